"""Points of all families as vectors of one length."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaces import vit
from spaces.analysis import analyse
from spaces.encoding import SHAPE, Encoder
from spaces.registry import PRESETS, SpaceError, make_space, preset_for
from spaces.spec import Task


def whole_space(size, **overrides):
    preset = PRESETS[preset_for(size)]
    families = [*preset.families, *preset.on_request]
    return make_space(Task(size, 3, 10), families=families, overrides=overrides)


SPACES = {size: whole_space(size) for size in (8, 28, 64)}
ENCODERS = {size: Encoder(space) for size, space in SPACES.items()}


@settings(max_examples=300, deadline=None)
@given(size=st.sampled_from(tuple(SPACES)), seed=st.integers(0, 2**32 - 1))
def test_points_of_every_family_are_vectors_of_one_length_and_no_two_collide(size, seed):
    space, encoder, rng = SPACES[size], ENCODERS[size], random.Random(seed)
    one = space.sample(rng)
    others = [space.sample(rng), *space.neighbours(one)]
    vectors = [encoder.encode(point) for point in (one, *others)]
    assert {len(vector) for vector in vectors} == {len(encoder.names)}
    for point, vector in zip(others, vectors[1:], strict=True):
        assert (vector == vectors[0]) == (point == one)


def test_the_first_numbers_are_those_of_the_network():
    space = SPACES[28]
    point = space.sample(random.Random(3))
    shape = dict(zip(SHAPE, ENCODERS[28].encode(point), strict=False))
    known = analyse(space.spec(point))
    assert shape["image_size"] == 28
    assert [shape[key] for key in ("tokens", "depth", "width", "head_width")] == [
        known.tokens,
        known.depth,
        known.width,
        known.head_width,
    ]


def test_families_share_the_columns_of_dimensions_of_the_same_name():
    names = ENCODERS[28].names
    assert len(set(names)) == len(names)
    assert {"depth", "point.depth"} <= set(names), "of the network, and as a dimension of several families"
    assert {
        "point.family=vit",
        "point.family=swin",
        "point.pooling=average",
        "point.patch_size",
        "point.window",
    } <= set(names)


def test_numbers_go_from_the_least_to_the_largest_value_of_the_space():
    space = make_space(
        Task(32, 3, 10),
        families=["vit"],
        overrides={
            "vit": {"depth": [2, 6], "qk_norm": [False, True], "patch_size": [4], "image_size": [32, 48]}
        },
    )
    encoder, rng = Encoder(space), random.Random(0)
    vectors = [encoder.encode(point) for point in draw(space, rng)]
    rows = [dict(zip(encoder.names, vector, strict=True)) for vector in vectors]
    for name in ("depth", "image_size", "qk_norm=true", "qk_norm=false"):
        assert {row[f"point.{name}"] for row in rows} == {0.0, 1.0}
    assert {row["point.patch_size"] for row in rows} == {0.0}


def draw(space, rng, count=100):
    return [space.sample(rng) for _ in range(count)]


def test_what_is_no_point_is_refused():
    point = next(p for p in draw(SPACES[28], random.Random(0)) if p["family"] == "vit")
    with pytest.raises(SpaceError, match=r"vit.depth: 99"):
        ENCODERS[28].encode({**point, "vit.depth": 99})


def test_a_network_that_is_not_known_without_building_is_encoded_by_its_dimensions():
    space = make_space(
        Task(64, 3, 10),
        families=["zoo", "vit"],
        overrides={"zoo": {"model": ["convnext_atto.d2_in1k", "mobilenetv3_small_100.lamb_in1k"]}},
    )
    encoder = Encoder(space)
    rows = {encoder.encode(point) for point in draw(space, random.Random(0)) if point["family"] == "zoo"}
    assert len(rows) == 4, "two networks at two sizes"


@pytest.mark.parametrize("size", [28, 64])
def test_drawing_and_encoding_a_point_takes_under_a_millisecond(size):
    space, encoder, rng = SPACES[size], ENCODERS[size], random.Random(0)
    start = time.process_time()
    for _ in range(500):
        encoder.encode(space.sample(rng))
    assert (time.process_time() - start) / 500 < 0.001


def test_every_word_of_a_fixed_dimension_that_is_named_has_a_column():
    space = make_space(
        Task(32, 3, 10), families=["vit"], overrides={"vit": {"positions": list(vit.POSITIONS)}}
    )
    assert {f"point.positions={word}" for word in vit.POSITIONS} <= set(Encoder(space).names)
