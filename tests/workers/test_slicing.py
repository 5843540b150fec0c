"""Which part of a larger network's tensors a smaller one takes."""

from __future__ import annotations

import pytest

from workers.slicing import Network, slices


def plain(
    width: int, heads: int, blocks: int = 1, hidden: int = 8, before: int = 1, patches: int = 4
) -> Network:
    shapes: dict[str, tuple[int, ...]] = {"pos_embed": (1, before + patches, width), "norm.weight": (width,)}
    for number in range(blocks):
        inside = {"attn.qkv.weight": (3 * width, width), "attn.proj.weight": (width, width)}
        inside |= {"mlp.fc1.weight": (hidden, width), "attn.q_norm.weight": (width // heads,)}
        shapes |= {f"blocks.{number}.{name}": shape for name, shape in inside.items()}
    return Network(shapes, {f"blocks.{number}.attn": heads for number in range(blocks)}, patches)


def taken(own: Network, source: Network, name: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return list(slices(own, source)[name].axes)


def test_heads_are_taken_whole_from_each_of_queries_keys_and_values() -> None:
    """Two heads of three, 4 wide both: rows 0 to 7 of every 12."""
    rows, columns = taken(plain(8, 2), plain(12, 3), "blocks.0.attn.qkv.weight")
    assert rows[0] == tuple(range(24))
    assert rows[1] == (*range(8), *range(12, 20), *range(24, 32))
    assert columns == (tuple(range(8)), tuple(range(8)))


def test_narrower_heads_take_the_first_places_of_each() -> None:
    """Two heads, 2 wide of 4: what goes out of a head goes into the projection at the same places."""
    rows, _ = taken(plain(4, 2), plain(8, 2), "blocks.0.attn.qkv.weight")
    assert rows[1] == (0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21)
    _, columns = taken(plain(4, 2), plain(8, 2), "blocks.0.attn.proj.weight")
    assert columns == ((0, 1, 2, 3), (0, 1, 4, 5))


def test_what_is_wider_takes_all_there_is() -> None:
    rows, columns = taken(plain(8, 2), plain(4, 1), "blocks.0.attn.qkv.weight")
    assert rows == ((*range(4), *range(8, 12), *range(16, 20)), tuple(range(12)))
    assert columns == ((0, 1, 2, 3), (0, 1, 2, 3))


def test_the_first_blocks_are_taken_and_deeper_ones_have_nothing() -> None:
    found = slices(plain(8, 2, blocks=3), plain(8, 2, blocks=2))
    assert found["blocks.1.mlp.fc1.weight"].source == "blocks.1.mlp.fc1.weight"
    assert not [name for name in found if name.startswith("blocks.2.")]


@pytest.mark.parametrize(
    "before, theirs, expected", [(1, 1, 0), (1, 2, 0), (2, 1, 0), (0, 1, None), (1, 0, None)]
)
def test_patches_keep_their_positions_whatever_tokens_come_before(
    before: int, theirs: int, expected: int | None
) -> None:
    to, source = taken(plain(8, 2, before=before), plain(8, 2, before=theirs), "pos_embed")[1]
    assert to[-4:] == tuple(range(before, before + 4))
    assert source[-4:] == tuple(range(theirs, theirs + 4))
    assert (to[0] if len(to) > 4 else None) == expected


def test_linear_layers_that_see_fewer_inputs_are_scaled_to_give_as_much() -> None:
    found = slices(plain(4, 1), plain(16, 4))
    assert found["blocks.0.mlp.fc1.weight"].gain == 2
    assert found["norm.weight"].gain == found["pos_embed"].gain == 1
    assert slices(plain(16, 4), plain(16, 4))["blocks.0.mlp.fc1.weight"].gain == 1


def test_a_norm_after_pooling_is_that_of_the_tokens_where_there_is_no_other() -> None:
    source = plain(8, 2)
    own = Network({"fc_norm.weight": (8,)}, {}, 4)
    assert slices(own, source)["fc_norm.weight"].source == "norm.weight"
    assert slices(source, own)["norm.weight"].source == "fc_norm.weight"


def staged(width: int, heads: int, stages: int) -> Network:
    shapes: dict[str, tuple[int, ...]] = {"patch_embed.proj.weight": (width, 1, 4, 4)}
    counts: dict[str, int] = {}
    for stage in range(stages):
        wide, many = width * 2**stage, heads * 2**stage
        name = f"layers.{stage}.blocks.0.attn"
        counts[name] = many
        shapes |= {f"{name}.relative_position_bias_table": (9, many), f"{name}.qkv.weight": (3 * wide, wide)}
        if stage:
            shapes[f"layers.{stage}.downsample.reduction.weight"] = (wide, 2 * wide)
    shapes["norm.weight"] = (width * 2 ** (stages - 1),)
    return Network(shapes, counts, 16, stages)


def test_merging_takes_the_same_channels_of_all_four_patches() -> None:
    rows, columns = taken(staged(2, 1, 2), staged(4, 2, 2), "layers.1.downsample.reduction.weight")
    assert rows == ((0, 1, 2, 3), (0, 1, 2, 3))
    assert columns == (tuple(range(8)), (0, 1, 4, 5, 8, 9, 12, 13))


def test_each_head_keeps_its_table_of_positions() -> None:
    places, heads = taken(
        staged(2, 1, 1), staged(4, 2, 1), "layers.0.blocks.0.attn.relative_position_bias_table"
    )
    assert places[0] == places[1] == tuple(range(9))
    assert heads == ((0,), (0,))


def test_the_last_norm_is_that_of_the_last_stage_alone() -> None:
    assert "norm.weight" in slices(staged(2, 1, 2), staged(4, 2, 2))
    assert "norm.weight" not in slices(staged(2, 1, 2), staged(4, 2, 3))


def test_kernels_of_another_size_are_no_part_of_each_other() -> None:
    other = staged(4, 2, 1)
    larger = Network({**other.shapes, "patch_embed.proj.weight": (4, 1, 8, 8)}, other.heads, 16)
    assert "patch_embed.proj.weight" not in slices(staged(2, 1, 1), larger)
