from __future__ import annotations

import itertools
import random
import zlib

import pytest

from workers.measure import samples


def test_what_is_packed_comes_back_in_its_order():
    taken = [random.Random(0).lognormvariate(0, 0.2) for _ in range(500)]
    assert samples.unpack(samples.pack(taken)) == pytest.approx(taken, rel=1e-7)
    assert samples.unpack(samples.from_text(samples.to_text(samples.pack(taken)))) == pytest.approx(taken)
    assert samples.unpack(samples.pack([])) == ()


def test_many_are_thinned_evenly_and_stay_under_8_kb():
    rng = random.Random(0)
    packed = samples.pack([float(place) + rng.random() for place in range(30_000)])
    kept = samples.unpack(packed)
    assert len(kept) == samples.MAX_SAMPLES
    assert len(packed) < 8_200
    steps = [b - a for a, b in itertools.pairwise(kept)]
    assert min(steps) > 13
    assert max(steps) < 17


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not zlib",
        samples.pack([1.0, 2.0])[:-3],
        zlib.compress(b"abc"),
        zlib.compress(bytes(10_000_000)),
    ],
)
def test_what_was_not_packed_is_refused_without_unpacking_it_all(content):
    with pytest.raises(ValueError, match="no packed samples"):
        samples.unpack(content)
