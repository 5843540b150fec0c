"""`paretovit space`: what a preset searches, and named models as points."""

from __future__ import annotations

import json

import pytest

from search.cli.main import main


def shown(capsys, *arguments):
    assert main(["space", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_preset_is_shown_with_its_size_dimensions_and_three_samples_that_have_costs(capsys):
    space = shown(capsys, "tiny", "--image-size", "8", "--channels", "1")
    assert space["name"] == "tiny"
    assert space["size"] > 1000
    assert space["dimensions"][0] == {
        "name": "family",
        "kind": "choice",
        "values": ["vit", "swin", "hybrid"],
        "when": {},
    }
    assert len(space["samples"]) == 3
    for sample in space["samples"]:
        assert sample["spec"]["image_size"] == 8
        assert sample["spec"]["args"]["in_chans"] == 1
        assert sample["params"] > 0
        assert sample["flops"] > 0
        assert sample["tokens"] >= 4


def test_a_named_model_is_shown_as_its_own_point(capsys):
    space = shown(capsys, "--named", "deit_tiny_patch16_224")
    assert space["size"] == 1
    (sample,) = space["samples"]
    assert (sample["params"], sample["tokens"]) == (5_717_416, 197)
    assert sample["point"]["vit.head_width"] == 64


def test_a_named_model_is_shown_for_another_task(capsys):
    space = shown(capsys, "--named", "swin_tiny_patch4_window7_224", "--classes", "10")
    assert space["samples"][0]["params"] == 28_288_354 - 990 * 769


def test_a_named_model_is_shown_at_the_image_size_that_it_was_published_for(capsys):
    (sample,) = shown(capsys, "--named", "swinv2_tiny_window8_256")["samples"]
    assert (sample["spec"]["image_size"], sample["params"]) == (256, 28_347_154)


def test_the_preset_for_large_images_is_shown_at_224_pixels(capsys):
    space = shown(capsys, "base")
    assert space["dimensions"][0]["values"] == ["vit", "swin", "hybrid"]
    assert {sample["spec"]["image_size"] for sample in space["samples"]} == {224}


def test_families_narrow_the_space(capsys):
    space = shown(capsys, "small", "--families", "vit,hybrid")
    assert space["dimensions"][0]["values"] == ["vit", "hybrid"]


def test_the_table_shows_every_dimension(capsys):
    assert main(["space", "tiny"]) == 0
    printed = capsys.readouterr().out
    for text in ("networks for 32 x 32", "parameters:", "swin.depth_3", "swin.num_stages in 3", "tokens"):
        assert text in printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            [],
            "give one of a preset (tiny, small, base, autoformer-tiny, autoformer-small, autoformer-base) and",
        ),
        (["tiny", "--named", "deit_tiny_patch16_224"], "give one of"),
        (["tnii"], "preset: unknown name 'tnii'; nearest: tiny"),
        (["--named", "resnet18"], "named: unknown name 'resnet18'"),
        (["--named", "deit_tiny_patch16_224", "--families", "vit"], "does not go with"),
        (["--named", "deit_tiny_patch16_224", "--image-size", "100"], "vit.patch_size: 16 is not legal"),
        (["tiny", "--image-size", "17"], "16 and 18"),
        (["tiny", "--image-size", "0"], "image_size: 0"),
        (["tiny", "--channels", "0"], "channels: 0"),
        (["tiny", "--classes", "1"], "num_classes: 1"),
        (["tiny", "--families", "vit,cnn"], "families: unknown name 'cnn'"),
        (["tiny", "--families", ""], "families: unknown name ''"),
    ],
)
def test_a_mistake_is_answered_in_a_line_with_the_remedy(capsys, arguments, says):
    assert main(["space", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
