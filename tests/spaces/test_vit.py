"""Facts of plain vision transformers."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaces import models
from spaces.analysis import analyse
from spaces.registry import SpaceError, make_space, named_space
from spaces.spec import ArchSpec, Task
from spaces.vit import FIXED, POSITIONS

GRID = list(itertools.product(range(4), range(4)))
EVERYTHING = {
    "positions": list(POSITIONS),
    "registers": [0, 1, 2, 4, 8],
    "qk_norm": [False, True],
    "layer_scale": [False, True],
    "qkv_bias": [False, True],
}
SPACES = [
    make_space(Task(size, 3, 10), families=["vit"], overrides={"vit": EVERYTHING}) for size in (8, 28, 32)
]


def known(space):
    return analyse(space.spec(space.sample(random.Random(0))))


def spec_of(image_size, **values):
    base = {"patch_size": 16, "depth": 12, "heads": 3, "head_width": 64, "mlp_ratio": 4, "pooling": "average"}
    overrides = {"vit": {key: [value] for key, value in {**base, **values}.items()}}
    space = make_space(Task(image_size, 3, 1000), families=["vit"], overrides=overrides)
    return space.spec(space.sample(random.Random(0)))


def one_vit(image_size, **values):
    return analyse(spec_of(image_size, **values))


def small(**values):
    return spec_of(32, **{"patch_size": 8, "depth": 2, "heads": 2, "head_width": 16, **values})


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("vit_base_patch16_224", 86_567_656),
        ("deit_tiny_patch16_224", 5_717_416),
        ("deit_small_patch16_224", 22_050_664),
        ("vit_base_patch32_224", 88_224_232),
        ("vit_base_patch16_rope_224", 86_434_792),
    ],
)
def test_the_published_models_are_points_with_their_published_parameters(name, params):
    assert known(named_space(name)).params == params


def test_224_px_and_16_px_patches_make_196_tokens_and_197_with_the_class_token():
    assert one_vit(224).tokens == 196
    assert one_vit(224, pooling="class_token").tokens == 197
    assert one_vit(224, patch_size=32).tokens == 49


def test_flops_and_parameters_do_not_depend_on_how_the_width_is_split_into_heads():
    split, whole = one_vit(224, heads=12, head_width=16), one_vit(224, heads=3, head_width=64)
    assert (split.params, split.flops) == (whole.params, whole.flops)
    assert split.activations > whole.activations


def test_doubling_the_resolution_multiplies_attention_score_flops_by_16():
    def scores(image_size):
        deep, shallow = one_vit(image_size, depth=2), one_vit(image_size, depth=1)
        dense = 2 * 12 * 192 * 192 * deep.tokens
        return deep.flops - shallow.flops - dense

    assert scores(448) == 16 * scores(224)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(space=st.sampled_from(SPACES), seed=st.integers(0, 2**32 - 1))
def test_every_point_of_every_dimension_builds_and_costs_what_the_closed_form_says(count_built, space, seed):
    spec = space.spec(space.sample(random.Random(seed)))
    built, known = count_built(spec), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)
    assert built.output == (1, 10)
    assert built.finite
    assert ArchSpec.from_dict(spec.to_dict()).digest == spec.digest


def test_what_is_fixed_is_no_dimension_and_leaves_no_trace_in_a_spec():
    space = make_space(Task(32, 3, 10), families=["vit"])
    assert not {f"vit.{key}" for key in FIXED} & {own.name for own in space.dimensions}
    named = {key: [value] for key, value in FIXED.items()}
    both = make_space(Task(32, 3, 10), families=["vit"], overrides={"vit": named})
    point = space.sample(random.Random(0))
    explicit = {**point, **{f"vit.{key}": value for key, value in FIXED.items()}}
    assert both.spec(explicit) == space.spec(point)
    assert space.spec(point).args.keys() == {
        *("patch_size", "embed_dim", "depth", "num_heads", "mlp_ratio", "class_token", "global_pool"),
        *("img_size", "in_chans", "num_classes"),
    }


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_order_of_the_patches_matters_where_they_have_positions_alone(filled, positions):
    spec = small(positions=positions, pooling="average", registers=0)
    model = filled(spec)
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    patches = [image[..., 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] for row, column in GRID]
    order = random.Random(0).sample(range(16), 16)
    rows = [torch.cat([patches[order[4 * row + column]] for column in range(4)], 3) for row in range(4)]
    with torch.no_grad():
        one, other = model(image), model(torch.cat(rows, 2))
    assert torch.allclose(one, other, atol=1e-5) == (positions == "none")


@pytest.mark.parametrize(("pooling", "registers"), [("class_token", 0), ("average", 0), ("class_token", 4)])
def test_kinds_of_positions_are_different_networks(filled, pooling, registers):
    kinds = [kind for kind in POSITIONS if kind != "relative" or not registers]
    specs = [small(positions=kind, pooling=pooling, registers=registers) for kind in kinds]
    assert len({spec.digest for spec in specs}) == len(kinds)
    outputs = []
    for spec in specs:
        with torch.no_grad():
            outputs.append(filled(spec)(torch.linspace(0, 99, 3 * 32 * 32).sin().view(1, 3, 32, 32)))
    for one, other in itertools.combinations(outputs, 2):
        assert not torch.allclose(one, other)


def test_registers_are_further_tokens_that_are_not_read_out():
    with_registers = small(registers=4)
    assert analyse(with_registers).tokens == analyse(small(registers=0)).tokens + 4
    model = models.build(with_registers).eval()
    assert model.num_prefix_tokens == 4
    seen = []
    model.fc_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        tokens = model.forward_features(torch.randn(1, 3, 32, 32))
        model.forward_head(tokens)
    assert torch.allclose(seen[0], tokens[:, 4:].mean(1))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"positions": ["relative"], "registers": [4]},
            "relative positions know no registers, and there are 4",
        ),
        (
            {"positions": ["absolute"]},
            "'absolute' is not legal; legal: learned, none, sincos, relative, rotary",
        ),
        ({"registers": [17]}, "vit.registers: 17 is not legal; legal: 0 to 16"),
        ({"qk_norm": ["yes"]}, "vit.qk_norm: 'yes' is not legal; legal: false, true"),
        ({"layer_scale": [1]}, "vit.layer_scale: 1 is not legal"),
    ],
)
def test_values_that_cannot_be_are_refused_with_the_reason(values, says):
    with pytest.raises(SpaceError) as refused:
        make_space(Task(32, 3, 10), families=["vit"], overrides={"vit": values})
    assert says in str(refused.value)


def test_relative_positions_and_registers_are_never_drawn_together():
    rng = random.Random(0)
    for _ in range(1000):
        point = SPACES[0].sample(rng)
        assert point["vit.positions"] != "relative" or not point["vit.registers"]
