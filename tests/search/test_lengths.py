"""Predicted lengths of jobs: what they follow, and that their intervals hold what they say."""

from __future__ import annotations

import math
import random

import pytest

from search.lengths import SHARE_COVERED, Lengths, Work
from workers.job import Kind


def training(candidate: int, flops: float | None = 1e6, epochs: int = 3, family: str = "vit") -> Work:
    return Work(Kind.TRAIN, candidate, family, flops, epochs)


def test_nothing_is_predicted_of_a_kind_that_was_never_done() -> None:
    lengths = Lengths([(Work(Kind.MEASURE, 1, "vit"), 2.0)])
    assert Lengths().predict(training(1)) is None
    assert lengths.predict(training(1)) is None
    assert lengths.predict(Work(Kind.MEASURE, 2, "swin")) is not None


def test_what_a_candidate_has_shown_goes_before_its_familys_usual() -> None:
    done = [(training(n), 30.0) for n in range(1, 9)] + [(training(9), 90.0)]
    own, other = Lengths(done).predict(training(9, epochs=6)), Lengths(done).predict(training(10, epochs=6))
    assert own is not None
    assert other is not None
    assert own.seconds == pytest.approx(180)
    assert 55 < other.seconds < 90
    assert own.high / own.low < other.high / other.low


def test_more_flops_take_longer_as_they_did() -> None:
    done = [(training(n, 10.0 ** (5 + n % 3)), 3 * 10.0 ** (n % 3 - 1)) for n in range(1, 31)]
    small, large = (Lengths(done).predict(training(99, flops)) for flops in (1e5, 1e7))
    assert small is not None
    assert large is not None
    assert 60 < large.seconds / small.seconds < 110


def test_a_family_is_told_from_another_of_the_same_flops() -> None:
    done = [(training(n, family="vit"), 10.0) for n in range(1, 9)]
    done += [(training(n, family="swin"), 40.0) for n in range(9, 17)]
    vit, swin, new = (Lengths(done).predict(training(99, family=f)) for f in ("vit", "swin", "pit"))
    assert vit is not None
    assert swin is not None
    assert new is not None
    assert vit.seconds < 13
    assert swin.seconds > 30
    assert vit.seconds < new.seconds < swin.seconds
    assert new.high / new.low > vit.high / vit.low


def test_networks_of_unknown_flops_are_predicted_by_their_family() -> None:
    predicted = Lengths([(training(n, None), 12.0) for n in range(1, 9)]).predict(training(9, None))
    assert predicted is not None
    assert predicted.seconds == pytest.approx(12, rel=0.01)


@pytest.mark.parametrize("off_by", [0.1, 0.5])
def test_intervals_hold_the_share_that_they_say(off_by: float) -> None:
    """Over many nights, and from the tenth job of each on."""
    inside = number = 0
    for night in range(40):
        draw = random.Random(night)
        done: list[tuple[Work, float]] = []
        for candidate in range(40):
            flops = 10 ** draw.uniform(6, 8)
            work = training(candidate, flops, draw.choice([1, 3, 9]), draw.choice(["vit", "swin", "hybrid"]))
            seconds = (flops / 1e6) ** 0.8 * work.epochs * math.exp(draw.gauss(0, off_by))
            predicted = Lengths(done).predict(work)
            if len(done) >= 10:
                assert predicted is not None
                inside += predicted.low <= seconds <= predicted.high
                number += 1
            done.append((work, seconds))
    assert inside / number > SHARE_COVERED - 0.05


def test_a_mean_counts_every_epoch_alike_and_what_was_never_done_takes_no_time() -> None:
    lengths = Lengths([(training(1, epochs=1), 10.0), (training(2, epochs=3), 90.0), (training(-1), 900.0)])
    assert lengths.mean(Kind.TRAIN).seconds == pytest.approx(25)
    assert lengths.mean(Kind.MEASURE).seconds == 0
