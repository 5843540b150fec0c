from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from search import pareto
from search.thinning import Group, Stored, choose

MAXIMISE = (True, False)
figures = st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float))


@st.composite
def stores(draw: st.DrawFn) -> list[Stored]:
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from([None, *Group]), st.integers(0, 5), st.integers(0, 9), figures),
            max_size=12,
        )
    )
    return [Stored(number, *row) for number, row in enumerate(rows, start=1)]


@given(stores(), st.integers(0, 40))
def test_nothing_that_keeps_its_checkpoint_goes_and_no_more_than_is_needed(
    stored: list[Stored], num_bytes: int
) -> None:
    chosen = choose(stored, MAXIMISE, num_bytes)
    freed = [one.num_bytes for one in chosen]
    may_go = [one for one in stored if one.group is not None and one.num_bytes]
    assert {one.number for one in chosen} <= {one.number for one in may_go}
    assert sum(freed) >= num_bytes or len(chosen) == len(may_go)
    assert not chosen or sum(freed[:-1]) < num_bytes


@given(stores(), st.integers(0, 40))
def test_they_go_group_by_group_the_worst_rank_first_and_the_least_trained_of_the_stopped(
    stored: list[Stored], num_bytes: int
) -> None:
    chosen = choose(stored, MAXIMISE, num_bytes)
    left = [one for one in stored if one not in chosen and one.group is not None and one.num_bytes]
    dominated = [one for one in stored if one.group is Group.DOMINATED]
    ranks = dict(
        zip(
            (one.number for one in dominated),
            pareto.ranks([one.values for one in dominated], MAXIMISE),
            strict=True,
        )
    )
    for gone in chosen:
        for one in left:
            assert gone.group is not None
            assert one.group is not None
            assert gone.group <= one.group
            if gone.group is one.group is Group.DOMINATED:
                assert ranks[gone.number] >= ranks[one.number]
            if gone.group is one.group is Group.STOPPED:
                assert gone.epoch <= one.epoch


def test_of_two_dominated_ones_the_one_behind_goes_first() -> None:
    near = Stored(1, Group.DOMINATED, 10, 9, (0.8, 2.0))
    far = Stored(2, Group.DOMINATED, 1, 9, (0.7, 3.0))
    assert choose([near, far], MAXIMISE, 1) == [far]
