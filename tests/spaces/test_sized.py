"""Image sizes as a dimension of every family."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaces.analysis import analyse
from spaces.dims import Choice, IntRange, Rule
from spaces.registry import FAMILIES, SpaceError, make_space
from spaces.spec import ArchSpec, Task

TASK = Task(28, 1, 10)
EVERY = [name for name in FAMILIES if name != "zoo"]
SPACE = make_space(TASK, families=EVERY, overrides={"image_size": [24, 28, 32]})


def sizes_of(space, family):
    rng = random.Random(0)
    points = [space.sample(rng) for _ in range(2000)]
    return {space.spec(point).image_size for point in points if point["family"] == family}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_every_point_of_every_size_builds_and_costs_what_the_closed_form_says(count_built, seed):
    spec = SPACE.spec(SPACE.sample(random.Random(seed)))
    built, known = count_built(spec, device="meta"), analyse(spec)
    assert built.output == (1, 10)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_points_stay_legal_when_they_are_drawn_varied_and_crossed(seed):
    rng = random.Random(seed)
    one, other = SPACE.sample(rng), SPACE.sample(rng)
    for point in (one, other, SPACE.crossover(one, other, rng), *SPACE.neighbours(one)):
        assert SPACE.illegal(point) is None


@pytest.mark.parametrize("family", EVERY)
def test_every_family_has_every_size(family):
    assert sizes_of(SPACE, family) == {24, 28, 32}
    assert f"{family}.image_size" in [own.name for own in SPACE.dimensions]


@pytest.mark.parametrize("family", EVERY)
def test_a_size_has_the_points_that_its_own_space_has(family):
    sized = make_space(TASK, families=[family], overrides={"image_size": [24, 32]})
    alone = [make_space(Task(size, 1, 10), families=[family]) for size in (24, 32)]
    assert sized.size() == sum(space.size() for space in alone)
    point = alone[1].sample(random.Random(0))
    same = {**point, f"{family}.image_size": 32}
    assert sized.spec(same).digest == alone[1].spec(point).digest


def test_the_size_of_the_data_alone_builds_what_no_size_builds():
    plain = make_space(TASK, families=["vit"])
    point = plain.sample(random.Random(0))
    sized = make_space(TASK, families=["vit"], overrides={"image_size": 28})
    assert sized.spec({**point, "vit.image_size": 28}) == plain.spec(point)
    assert "vit.image_size" not in [own.name for own in plain.dimensions]


def test_a_family_takes_the_sizes_that_it_has_a_point_at():
    space = make_space(TASK, overrides={"image_size": [25, 28]})
    assert [sizes_of(space, family) for family in space.families] == [{25, 28}, {25, 28}, {28}]


def test_a_family_s_own_sizes_go_before_those_of_all():
    space = make_space(TASK, overrides={"image_size": [28, 32], "vit": {"image_size": [24]}})
    assert sizes_of(space, "vit") == {24}
    assert sizes_of(space, "swin") == {28, 32}


@pytest.mark.parametrize(("own", "sizes"), [({}, (64, 96)), ({"zoo": {"image_size": [128]}}, (128,))])
def test_the_zoo_takes_the_sizes_too_but_for_its_own(own, sizes):
    space = make_space(TASK, families=["zoo", "vit"], overrides={"image_size": [28, 64, 96], **own})
    domain = next(each.domain for each in space.dimensions if each.name == "zoo.image_size")
    assert domain == Choice(sizes)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            {"image_size": [28, 17]},
            "image_size: 17 is not legal in any family: vit.patch_size: none cuts 17 px",
        ),
        ({"image_size": [2]}, "image_size: 2 is not legal; legal: 4 to 1024"),
        ({"image_size": []}, "image_size: no values"),
        ({"image_size": {"low": 4, "high": 1024}}, "image_size: 1021 sizes; at most 64"),
        ({"image_size": ["28"]}, "image_size: '28' is not legal"),
        ({"vit": {"image_size": [17, 28]}}, "vit.image_size: 17 is not legal: "),
        ({"vit": {"image_size": [17]}}, "vit.patch_size: none cuts 17 px images"),
        ({"vit": {"image_size": [24, 28], "patch_size": [7]}}, "at 24 px; legal: "),
        ({"swin": {"image_size": [24, 28], "window": [20]}}, "window 20 is larger than the map"),
    ],
)
def test_sizes_that_cannot_be_are_refused_with_the_reason(overrides, says):
    with pytest.raises(SpaceError) as refused:
        make_space(TASK, overrides=overrides)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("patch_size", [4, 7])
def test_a_larger_image_is_more_tokens_and_no_more_parameters_but_for_their_positions(patch_size):
    overrides = {"vit": {"image_size": [28, 56], "patch_size": [patch_size], "positions": ["none"]}}
    space = make_space(TASK, families=["vit"], overrides=overrides)
    point = space.sample(random.Random(0))
    small, large = (analyse(space.spec({**point, "vit.image_size": size})) for size in (28, 56))
    assert large.params == small.params
    assert large.tokens == pytest.approx(4 * small.tokens, abs=3)


class Sizes:
    """A family whose words, and on request whose dimensions or rules, are others at 32 px."""

    name = "sizes"
    conditions: Mapping[str, Any] = {}
    named: Mapping[str, Any] = {}

    def __init__(self, differs: str) -> None:
        self.differs = differs

    def limits(self, task: Task) -> dict[str, Any]:
        is_large = task.image_size == 32
        own = {"kind": Choice(("conv", "attention") if is_large else ("conv",)), "depth": IntRange(1, 3)}
        return own | ({"heads": IntRange(1, 2)} if is_large and self.differs == "limits" else {})

    def ranges(self, task: Task) -> None:
        return None

    def rules(self, task: Task) -> list[Rule]:
        is_missing = task.image_size == 28 and self.differs == "rules"
        return (
            [] if is_missing else [Rule(("depth",), lambda values: "odd" if values["depth"] == 3 else None)]
        )

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        return ArchSpec("sizes", dict(values), task.image_size)


def of_sizes(differs: str) -> Any:
    return make_space(TASK, "tiny", ["sizes"], {"image_size": [28, 32]}, own={"sizes": Sizes(differs)})


def test_words_may_be_legal_at_one_size_and_not_at_another():
    assert of_sizes("nothing").size() == 2 + 4


@pytest.mark.parametrize("differs", ["limits", "rules"])
def test_a_family_with_other_dimensions_at_another_size_is_refused_by_name(differs):
    says = f"sizes: its {differs} at 32 px are about other dimensions than at 28 px"
    with pytest.raises(SpaceError, match=says):
        of_sizes(differs)
