"""Blocks that differ."""

from __future__ import annotations

import random

import pytest
import torch

from spaces import models
from spaces.analysis import analyse
from spaces.networks.autoformer import RelativeAttention
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import Task


def draw(seed=0, **overrides):
    space = make_space(Task(32, 3, 10), families=["autoformer"], overrides={"autoformer": overrides})
    return space.spec(space.sample(random.Random(seed)))


@pytest.mark.parametrize(
    ("name", "params", "published"),
    [
        ("autoformer_tiny", 5_867_944, 5.8e6),
        ("autoformer_small", 22_891_432, 22.9e6),
        ("autoformer_base", 53_691_688, 53.7e6),
    ],
)
def test_the_published_sub_networks_have_their_published_parameters(count_built, name, params, published):
    """The published count of the smallest one is that without its tables of relative positions, which are 1.7% of it
    and next to nothing of the others."""
    space = named_space(name)
    spec = space.spec(space.sample(random.Random(0)))
    built = count_built(spec, device="meta")
    tables = sum(rows * width for key, (rows, width, *_) in two_dimensional(built.shapes) if is_table(key))
    assert built.params == params == analyse(spec).params
    assert built.flops == analyse(spec).flops
    assert params - tables == pytest.approx(published, rel=0.01)
    assert params == pytest.approx(published, rel=0.012)


def two_dimensional(shapes):
    return [(key, shape) for key, shape in shapes if len(shape) == 2]


def is_table(key):
    return key.rpartition(".")[2] in ("key_rows", "key_columns", "value_rows", "value_columns")


@pytest.mark.parametrize("size", ["tiny", "small", "base"])
def test_the_presets_are_the_published_spaces(count_built, size):
    space = make_space(Task(224, 3, 1000), f"autoformer-{size}")
    assert space.families == ("autoformer",)
    depths = {"tiny": (12, 13, 14), "small": (12, 13, 14), "base": (14, 15, 16)}[size]
    choices = {"tiny": 2 * 2, "small": 3 * 3, "base": 2 * 3}[size]
    assert space.size() == 3 * sum(choices**depth for depth in depths)
    spec = space.spec(space.sample(random.Random(0)))
    assert spec.args["patch_size"] == 16
    assert count_built(spec, device="meta").params == analyse(spec).params


def test_the_published_small_and_base_sub_networks_are_points_of_their_presets():
    for size in ("small", "base"):
        found = named_space(f"autoformer_{size}")
        point = found.sample(random.Random(0))
        assert make_space(Task(224, 3, 1000), f"autoformer-{size}").illegal(point) is None


def test_attention_is_64_wide_a_head_whatever_the_width_of_the_network():
    spec = draw(width=[96], depth=[2], heads_1=[1], heads_2=[3], mlp_ratio_1=[1], mlp_ratio_2=[2.5])
    blocks = models.build(spec).blocks
    assert [block.attn.qkv.out_features for block in blocks] == [3 * 64, 3 * 192]
    assert [block.attn.proj.in_features for block in blocks] == [64, 192]
    assert [block.mlp.fc1.out_features for block in blocks] == [96, 240]


def test_a_block_past_the_depth_has_no_dimensions():
    space = make_space(Task(32, 3, 10), families=["autoformer"])
    rng = random.Random(0)
    for _ in range(200):
        point = space.sample(rng)
        depth = point["autoformer.depth"]
        assert len([key for key in point if key.startswith("autoformer.heads_")]) == depth
        assert len(space.spec(point).args["mlp_ratios"]) == depth


def by_pairs(attention, x, max_distance):
    """The attention of the paper, with a vector made for every pair of tokens."""
    batch, tokens, _ = x.shape
    grid = int((tokens - 1) ** 0.5)
    q, k, v = attention.qkv(x).view(batch, tokens, 3, attention.num_heads, 64).permute(2, 0, 3, 1, 4)
    place = torch.arange(tokens - 1)
    apart = [part[None, :] - part[:, None] for part in (place // grid, place % grid)]
    rows, columns = (
        torch.nn.functional.pad(part.clamp(-max_distance, max_distance) + max_distance + 1, (1, 0, 1, 0))
        for part in apart
    )
    keys = attention.key_rows[rows] + attention.key_columns[columns]
    values = attention.value_rows[rows] + attention.value_columns[columns]
    scores = q @ k.transpose(-2, -1) + torch.einsum("bhid,ijd->bhij", q, keys)
    weights = (scores * 64**-0.5).softmax(-1)
    mixed = weights @ v + torch.einsum("bhij,ijd->bhid", weights, values)
    return attention.proj(mixed.transpose(1, 2).reshape(batch, tokens, -1))


@pytest.mark.parametrize(("grid", "max_distance"), [(4, 4), (7, 3), (2, 14)])
def test_rows_and_columns_taken_apart_give_what_all_pairs_give(grid, max_distance):
    torch.manual_seed(0)
    attention = RelativeAttention(48, 2, grid, max_distance)
    with torch.no_grad():
        for value in attention.parameters():
            value.normal_(0, 0.3)
        x = torch.randn(2, 1 + grid * grid, 48)
        assert torch.allclose(attention(x), by_pairs(attention, x, max_distance), atol=1e-5)


def test_relative_distances_are_those_of_the_map():
    assert draw(patch_size=[8]).args["max_distance"] == 4
    assert (
        named_space("autoformer_tiny")
        .spec(named_space("autoformer_tiny").sample(random.Random(0)))
        .args["max_distance"]
        == 14
    )


def test_the_class_token_is_not_read_but_reaches_the_patches(filled):
    model = filled(draw(depth=[2]))
    tokens = torch.randn(1, 1 + model.patch_embed.num_patches, model.embed_dim)
    changed = tokens.clone()
    changed[:, 0] += 1
    with torch.no_grad():
        assert torch.equal(model.forward_head(tokens), model.forward_head(changed))
        assert not torch.allclose(model.blocks[0](tokens)[:, 1:], model.blocks[0](changed)[:, 1:])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"depth": [2], "heads_3": [1]}, "autoformer.heads_3: has no effect: it needs depth to be 3"),
        ({"heads_1": [25]}, "autoformer.heads_1: 25 is not legal; legal: 1 to 24"),
        ({"width": [100]}, "autoformer.width: 100 is not legal; legal: 8 to 1536 in steps of 8"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(values, says):
    with pytest.raises(SpaceError) as refused:
        make_space(Task(32, 3, 10), families=["autoformer"], overrides={"autoformer": values})
    assert says in str(refused.value)
