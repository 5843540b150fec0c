"""What holds for every point of every space."""

from __future__ import annotations

import random
import time

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from spaces import hybrid, swin, vit, windowed
from spaces.analysis import analyse
from spaces.registry import FAMILIES, PRESETS, SpaceError, make_space, preset_for
from spaces.spec import ArchSpec, Task

IMAGE_SIZES = (8, 28, 32, 64, 96, 128, 224)


def whole_space(size):
    """Every family that the preset of an image size has, also on request."""
    preset = PRESETS[preset_for(size)]
    return make_space(Task(size, 1 if size < 32 else 3, 10), families=[*preset.families, *preset.on_request])


SPACES = {size: whole_space(size) for size in IMAGE_SIZES}
SMALL_OVERRIDES = {
    "vit": {"depth": [1, 2], "heads": [1, 2], "head_width": [16], "mlp_ratio": [1, 2]},
    "swin": {
        "window": [2, 4, 8],
        "depth_1": [1],
        "depth_2": [1, 2],
        "depth_3": [1, 2],
        "heads": [1, 2],
        "head_width": [8],
        "mlp_ratio": [1],
    },
    "hybrid": {
        "stem_depth": [2, 3],
        "stem_width": [8, 16],
        "depth": [1],
        "heads": [1, 2],
        "head_width": [16],
        "mlp_ratio": [1, 2],
    },
}
FIXED = {
    "vit": vit.FIXED,
    "windowed": windowed.FIXED,
    "deit": vit.BLOCK_FIXED,
    "swin": swin.FIXED,
    "swinv2": swin.FIXED,
    "hybrid": hybrid.FIXED,
}
seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from(IMAGE_SIZES)


def enumerate_points(space):
    """Every assignment of the active dimensions, legal or not."""
    points = [{}]
    for dimension in space.dimensions:
        points = [
            {**point, **extra}
            for point in points
            for extra in (
                [{dimension.name: value} for value in dimension.domain.values]
                if dimension.active(point)
                else [{}]
            )
        ]
    return points


@pytest.fixture(scope="module")
def small():
    """A space of a few hundred points over all families."""
    return make_space(Task(8, 1, 10), overrides=SMALL_OVERRIDES)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.sampled_from((8, 8, 28, 28, 32, 32, 64, 96, 128)), seed=seeds)
@example(size=28, seed=0)
def test_every_point_builds_runs_and_costs_what_the_closed_form_says(count_built, size, seed):
    space = SPACES[size]
    spec = space.spec(space.sample(random.Random(seed)))
    built, known = count_built(spec), analyse(spec)
    assert built.output == (1, 10)
    assert built.finite
    assert built.params == known.params
    assert built.flops == pytest.approx(known.flops, rel=0.01)
    assert built.activations == known.activations
    assert ArchSpec.from_dict(spec.to_dict()).digest == spec.digest


@pytest.mark.parametrize("size", IMAGE_SIZES)
def test_points_build_on_the_meta_device(count_built, size):
    rng = random.Random(size)
    for family in SPACES[size].families:
        space = make_space(SPACES[size].task, families=[family])
        spec = space.spec(space.sample(rng))
        assert count_built(spec, device="meta").params == analyse(spec).params


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_thousand_points_build_and_cost_what_the_closed_form_says(count_built):
    """All families, all their dimensions, all sizes that a preset is for. Takes about half an hour."""
    rng = random.Random(0)
    for name, preset in PRESETS.items():
        low, high = preset.image_sizes
        drawn, wanted = 0, 3_000 if low < high else 350
        while drawn < wanted:
            size = rng.randint(low, high)
            try:
                space = everything(Task(size, rng.choice((1, 3)), 10), name)
            except SpaceError:
                continue  # a prime number of pixels
            for _ in range(20):
                spec = space.spec(space.sample(rng))
                built, known = count_built(spec, device="meta"), analyse(spec)
                assert (built.params, built.flops, built.activations) == (
                    *(known.params, known.flops, known.activations),
                ), spec
                assert built.output == (1, 10)
                drawn += 1


def everything(task, name):
    """One family of a preset, by the image size, with the dimensions that it fixes as well."""
    preset = PRESETS[name]
    families = [*preset.families, *preset.on_request]
    family = families[task.image_size % len(families)]
    fixed = FIXED.get(family, {})
    limits = FAMILIES[family].limits(task)
    return make_space(task, name, [family], {family: {key: list(limits[key].values) for key in fixed}})


@settings(max_examples=200, deadline=None)
@given(size=sizes, seed=seeds)
def test_points_stay_legal_when_they_are_drawn_varied_and_crossed(size, seed):
    space, rng = SPACES[size], random.Random(seed)
    one, other = space.sample(rng), space.sample(rng)
    for point in (one, other, space.crossover(one, other, rng), *space.neighbours(one)):
        assert space.illegal(point) is None


@settings(max_examples=200, deadline=None)
@given(size=sizes, seed=seeds)
def test_distance_is_symmetric_at_most_one_and_zero_for_the_same_point_alone(size, seed):
    space, rng = SPACES[size], random.Random(seed)
    one, other = space.sample(rng), space.sample(rng)
    assert space.distance(one, one) == 0
    assert space.distance(one, other) == pytest.approx(space.distance(other, one))
    assert 0 <= space.distance(one, other) <= 1
    assert (space.distance(one, other) == 0) == (one == other)


@settings(max_examples=100, deadline=None)
@given(size=sizes, seed=seeds)
def test_neighbours_are_other_points_of_the_family_and_near(size, seed):
    space = SPACES[size]
    point = space.sample(random.Random(seed))
    neighbours = space.neighbours(point)
    assert neighbours
    assert point not in neighbours
    assert len({str(near) for near in neighbours}) == len(neighbours)
    assert all(near["family"] == point["family"] for near in neighbours)
    assert all(0 < space.distance(point, near) < 0.5 for near in neighbours)


@pytest.mark.parametrize("sizes", [None, [8, 12, 16]])
def test_a_neighbour_is_as_near_as_any_point_with_that_value(sizes):
    """Against all points, also where a rule has to be mended and where image sizes are branches of their own."""
    changed = {"window": [2, 4, 8], "depth_1": [1, 2], "mlp_ratio": [1, 2], "shift": [False, True]}
    overrides = {"swin": {**SMALL_OVERRIDES["swin"], **changed}, **({"image_size": sizes} if sizes else {})}
    space, rng = make_space(Task(8, 1, 10), families=["swin"], overrides=overrides), random.Random(0)
    points = [point for point in enumerate_points(space) if space.illegal(point) is None]
    mended = 0
    for _ in range(10):
        point = space.sample(rng)
        for near in space.neighbours(point):
            changes = {key for key in near.keys() | point.keys() if near.get(key) != point.get(key)}
            mended += len(changes) > 1
            assert any(
                space.distance(point, near)
                <= min(space.distance(point, other) for other in points if other.get(key) == near[key]) + 1e-9
                for key in changes & near.keys()
            )
    assert mended


def test_neighbours_lead_from_any_point_to_every_other(small):
    for family in small.families:
        space = make_space(small.task, families=[family], overrides={family: SMALL_OVERRIDES[family]})
        start = space.sample(random.Random(0))
        reached, open_points = {str(start)}, [start]
        while open_points:
            for near in space.neighbours(open_points.pop()):
                if str(near) not in reached:
                    reached.add(str(near))
                    open_points.append(near)
        assert len(reached) == space.size()


def test_a_crossover_takes_values_from_both_parents():
    space = make_space(Task(28, 1, 10), families=["vit"])
    rng = random.Random(3)
    one, other = space.sample(rng), space.sample(rng)
    children = [space.crossover(one, other, rng) for _ in range(50)]
    assert all(child[key] in (one[key], other[key]) for child in children for key in child)
    assert any(child not in (one, other) for child in children)


def test_a_crossover_of_two_families_shares_what_both_have():
    space, rng = SPACES[28], random.Random(0)
    vit = {
        "family": "vit",
        "vit.patch_size": 4,
        "vit.depth": 5,
        "vit.heads": 4,
        "vit.head_width": 32,
        "vit.mlp_ratio": 1.0,
        "vit.pooling": "average",
    }
    hybrid = {
        "family": "hybrid",
        "hybrid.stride": 2,
        "hybrid.stem_depth": 2,
        "hybrid.stem_width": 8,
        "hybrid.depth": 1,
        "hybrid.heads": 1,
        "hybrid.head_width": 16,
        "hybrid.mlp_ratio": 4.0,
        "hybrid.pooling": "class_token",
    }
    children = [space.crossover(vit, hybrid, rng) for _ in range(100)]
    assert {child["family"] for child in children} == {"vit", "hybrid"}
    assert {child["vit.depth"] for child in children if child["family"] == "vit"} == {1, 5}
    assert {child["hybrid.stride"] for child in children if child["family"] == "hybrid"} == {2}


def test_size_is_the_number_of_legal_points(small):
    points = enumerate_points(small)
    legal = [point for point in points if small.illegal(point) is None]
    assert small.raw_size() == len(points)
    assert small.size() == len(legal)
    assert 100 < len(legal) < len(points)


def test_every_legal_point_can_be_drawn_and_no_other(small):
    rng = random.Random(0)
    legal = {str(point) for point in enumerate_points(small) if small.illegal(point) is None}
    assert {str(small.sample(rng)) for _ in range(20_000)} == legal


def test_different_points_are_different_networks(small):
    specs = [small.spec(point) for point in enumerate_points(small) if small.illegal(point) is None]
    assert len({spec.digest for spec in specs}) == len(specs)
    costs = {}
    for spec in specs:
        costs.setdefault((spec.model, analyse(spec)), []).append(spec)
    alike = max(costs.values(), key=len)
    assert len(alike) <= 4, "specs of equal cost are rare, else a dimension does nothing"


@pytest.mark.parametrize("size", [8, 28, 64])
def test_changing_any_dimension_changes_the_built_network(count_built, filled, size):
    """Its parameters or FLOPs, or else its answer with the same weights."""
    image = torch.randn(1, SPACES[size].task.channels, size, size, generator=torch.Generator().manual_seed(0))
    for family in SPACES[size].families:
        space = make_space(SPACES[size].task, families=[family])
        point = space.sample(random.Random(1))
        changed = {
            next(key for key in near if near.get(key) != point.get(key)): near
            for near in space.neighbours(point)
        }
        own = count_built(space.spec(point))
        for key, near in changed.items():
            other = count_built(space.spec(near))
            if (other.shapes, other.flops) == (own.shapes, own.flops):
                with torch.no_grad():
                    one, changed_one = filled(space.spec(point))(image), filled(space.spec(near))(image)
                assert not torch.allclose(one, changed_one), key


@pytest.mark.parametrize("size", IMAGE_SIZES)
def test_every_dimension_varies_in_a_thousand_samples(size):
    rng = random.Random(0)
    for family in SPACES[size].families:
        space = make_space(SPACES[size].task, families=[family])
        points = [space.sample(rng) for _ in range(1000)]
        for dimension in space.dimensions[1:]:
            seen = {point[dimension.name] for point in points if dimension.name in point}
            assert seen == set(dimension.domain.values), dimension.name
            assert len(seen) > 1, dimension.name


def test_a_point_holds_exactly_the_active_dimensions():
    space, rng = SPACES[28], random.Random(0)
    for _ in range(300):
        point = space.sample(rng)
        assert list(point) == [own.name for own in space.dimensions if own.active(point)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vit.depth": 99}, "vit.depth: 99 is not legal; legal: 1 to 6"),
        ({"vit.depth": 2.0}, "vit.depth: 2.0"),
        ({"vit.depth": True}, "vit.depth: True"),
        ({"vit.dept": 2}, "vit.dept: no such dimension"),
        ({"swin.heads": 2}, "swin.heads: not a dimension of this point"),
        ({"family": "cnn"}, "family: 'cnn' is not legal"),
    ],
)
def test_a_point_that_is_none_is_refused_with_the_reason(change, says):
    space = make_space(Task(28, 1, 10), families=["vit", "swin"])
    point = {
        **next(p for p in iter(lambda: space.sample(random.Random(2)), None) if p["family"] == "vit"),
        **change,
    }
    assert says in str(space.illegal(point))
    with pytest.raises(SpaceError, match=r"."):
        space.spec(point)


def test_a_missing_dimension_is_named():
    space = make_space(Task(28, 1, 10), families=["vit"])
    point = space.sample(random.Random(0))
    del point["vit.heads"]
    assert "vit.heads: missing" in str(space.illegal(point))


def test_the_same_seed_draws_the_same_points():
    def drawn():
        rng = random.Random(7)
        return [SPACES[64].sample(rng) for _ in range(20)]

    assert drawn() == drawn()


@pytest.mark.parametrize("size", IMAGE_SIZES)
def test_drawing_takes_under_a_millisecond(size):
    space, rng = SPACES[size], random.Random(0)
    start = time.process_time()
    for _ in range(1000):
        space.sample(rng)
    assert time.process_time() - start < 1.0
