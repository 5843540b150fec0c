from __future__ import annotations

from search.provenance import words

TIMMS = {
    "name": "deit_tiny_patch16_224.fb_in1k",
    "file": "/cache/model.safetensors",
    "sha256": "0123456789abcdef" * 4,
    "data": "fb_in1k",
    "image_size": 224,
    "num_tensors": 78,
    "resampled": ["pos_embed", "patch_embed.proj.weight"],
    "fresh": ["head.weight", "head.bias"],
    "blocks": {"blocks": [6, 12]},
}


def test_all_that_was_done_to_weights_is_said() -> None:
    assert words(TIMMS) == (
        "began from deit_tiny_patch16_224.fb_in1k (fb_in1k, 224 px, SHA-256 0123456789ab): 6 of 12 blocks; "
        "resampled pos_embed, patch_embed.proj.weight; fresh head.weight, head.bias"
    )


def test_of_a_users_own_file_its_name_and_digest_are_known() -> None:
    own = {"name": "flowers", "file": "/w/flowers.safetensors", "sha256": "ab" * 32, "num_tensors": 3}
    assert words(own) == "began from flowers (SHA-256 abababababab)"


def test_long_lists_are_counted() -> None:
    assert words(TIMMS | {"resampled": ["a", "b", "c", "d", "e"]}).count("a, b, c and 2 more") == 1


def test_of_what_was_inherited_its_share_and_the_ways_it_was_taken_are_said() -> None:
    inherited = {key: TIMMS[key] for key in ("name", "file", "sha256", "data", "image_size", "fresh")}
    inherited |= {"share": 0.876, "num_whole": 2, "sliced": ["a", "b", "c"], "widened": ["d"]}
    assert words(inherited) == (
        "began from parts of deit_tiny_patch16_224.fb_in1k (fb_in1k, 224 px, SHA-256 0123456789ab): 88% of its "
        "parameters (2 tensors whole, 3 tensors sliced); widened d; fresh head.weight, head.bias"
    )
