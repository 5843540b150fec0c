"""Numbers of things, and bounds, in words."""

from __future__ import annotations

from dashboards import words
from workers.counting import counted, interval, plain


def test_one_is_one_and_the_others_are_many():
    assert [counted(number, "epoch") for number in (0, 1, 1200)] == ["0 epochs", "1 epoch", "1,200 epochs"]
    assert counted(2, "batch", "batches") == "2 batches"


def test_a_bound_has_no_exponent_where_it_is_large():
    assert [plain(number) for number in (1e8, 2**31 - 1, 0.99999, 3)] == [
        "100000000",
        "2147483647",
        "0.99999",
        "3",
    ]


def test_intervals_look_alike_everywhere():
    assert interval(0.153, 0.22) == "0.153–0.22"
    assert interval(0.153, 0.22, ".3f") == words.interval("accuracy", (0.153, 0.22)) == "0.153–0.220"
