"""Domains, conditions and overrides."""

from __future__ import annotations

import pytest

from spaces.dims import Choice, Dimension, FloatRange, Grid, IntRange, SpaceError, parse_override

DEPTH = IntRange(1, 64)
RATIO = FloatRange(0.25, 8.0, 0.25)
PATCH = Choice((1, 2, 4, 7, 14))


def test_a_range_holds_its_ends_and_steps():
    assert IntRange(4, 12, 4).values == (4, 8, 12)
    assert FloatRange(1.0, 2.0, 0.25).values == (1.0, 1.25, 1.5, 1.75, 2.0)


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (DEPTH, 64, 65),
        (IntRange(4, 12, 4), 8, 6),
        (RATIO, 0.5, 0.3),
        (PATCH, 7, 3),
        (Choice(("class_token", "average")), "average", "max"),
    ],
)
def test_a_domain_knows_its_values(domain, inside, outside):
    assert inside in domain
    assert outside not in domain


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1], float("nan")])
def test_a_value_of_another_type_is_in_no_domain_of_whole_numbers(value):
    assert value not in DEPTH
    assert value not in PATCH


def test_numbers_are_ordered_and_words_are_not():
    assert PATCH.ordered
    assert DEPTH.ordered
    assert not Choice(("class_token", "average")).ordered


def test_a_grid_takes_the_patches_that_cut_the_image_into_so_many():
    assert Grid(4, 16).of(PATCH, 28) == Choice((2, 4, 7))


def test_a_dimension_is_active_when_all_its_conditions_hold():
    third = Dimension("swin.depth_3", DEPTH, (("family", ("swin",)), ("swin.num_stages", (3, 4))))
    assert third.active({"family": "swin", "swin.num_stages": 3})
    assert not third.active({"family": "swin", "swin.num_stages": 2})
    assert not third.active({"family": "vit", "swin.num_stages": 3})


@pytest.mark.parametrize(
    ("raw", "legal", "parsed"),
    [
        ([2, 4], PATCH, Choice((2, 4))),
        (4, PATCH, Choice((4,))),
        ({"low": 2, "high": 6}, DEPTH, IntRange(2, 6)),
        ({"low": 1, "high": 6, "step": 2}, DEPTH, IntRange(1, 5, 2)),
        ({"low": 1, "high": 3, "step": 0.75}, RATIO, FloatRange(1.0, 2.5, 0.75)),
        ([2, 4], RATIO, Choice((2.0, 4.0))),
    ],
)
def test_an_override_becomes_a_domain(raw, legal, parsed):
    assert parse_override("vit.key", raw, legal) == parsed


@pytest.mark.parametrize(
    ("raw", "legal", "named"),
    [
        ([0], DEPTH, "0"),
        (10**6, DEPTH, "1000000"),
        ({"low": 1, "high": 10**12}, DEPTH, "1000000000000"),
        ({"low": 6, "high": 2}, DEPTH, "low 6"),
        ({"low": 1, "high": 6, "step": 0}, DEPTH, "step 0"),
        ({"low": 1, "high": 6, "step": -1}, DEPTH, "step -1"),
        ({"low": 1, "high": 6, "step": True}, DEPTH, "step true"),
        ({"low": 1, "high": 6, "stpe": 1}, DEPTH, "stpe"),
        ({"low": 1}, DEPTH, "high"),
        ({"low": "a", "high": 2}, DEPTH, "'a'"),
        ({"low": 1, "high": 2, "step": 0.1}, RATIO, "step 0.1"),
        ({"low": 1, "high": 2, "step": float("nan")}, RATIO, "step nan"),
        ({"low": 1, "high": 4}, PATCH, "list"),
        ([4, 5], PATCH, "5"),
        ([], PATCH, "no values"),
        ([2, 2], PATCH, "twice"),
        ([2, [4]], PATCH, "[4]"),
        ([True], DEPTH, "true"),
        ([2.5], DEPTH, "2.5"),
        (float("nan"), RATIO, "nan"),
        (float("inf"), RATIO, "inf"),
        (None, DEPTH, "null"),
        ("three", DEPTH, "'three'"),
        ("x" * 10_000, DEPTH, "xxx"),
    ],
)
def test_a_hostile_override_is_refused_by_key_and_value(raw, legal, named):
    with pytest.raises(SpaceError) as refused:
        parse_override("vit.key", raw, legal)
    assert "vit.key" in str(refused.value)
    assert named in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("legal", [DEPTH, RATIO, PATCH])
def test_a_refused_value_is_answered_with_the_legal_ones(legal):
    with pytest.raises(SpaceError, match="legal: ") as refused:
        parse_override("vit.key", [-3], legal)
    assert str(legal) in str(refused.value)


@pytest.mark.parametrize(("raw", "shown"), [(True, "true"), (None, "null"), ("yes", "'yes'")])
def test_a_value_is_named_as_it_is_written_in_a_config(raw, shown):
    with pytest.raises(SpaceError) as refused:
        parse_override("vit.depth", raw, IntRange(1, 3))
    assert str(refused.value) == f"vit.depth: {shown} is not legal; legal: 1 to 3"
    assert str(Choice((False, True))) == "false, true"
