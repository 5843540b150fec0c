from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from search import queue
from search.queue import Next, Run
from search.states import QueueState, SearchState
from search.store.read.rows import QueueRow

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC).timestamp()
NIGHT = datetime(2026, 6, 10, 23, tzinfo=UTC).timestamp()


def row(number: int, **values: Any) -> QueueRow:
    plain: dict[str, Any] = dict.fromkeys(QueueRow.__dataclass_fields__)
    plain |= {"id": number, "name": f"s{number}", "modules": (), "priority": 5, "state": QueueState.WAITING}
    plain |= {"held": False, "created": float(number), "failures": 0, "claim": 0, "beat": 0}
    return QueueRow(**plain | values)


def chosen(*rows: QueueRow, now: float = NOON, modules: tuple[str, ...] = ()) -> int | None:
    found = queue.choose(rows, now, modules, UTC)
    return None if found is None else found.id


def test_the_highest_priority_goes_first_and_of_equals_the_oldest() -> None:
    assert chosen(row(1), row(2, priority=7), row(3, priority=7)) == 2
    assert chosen(row(2), row(1)) == 1
    assert chosen() is None


def test_a_shut_window_waits_and_an_open_one_goes_before_what_may_run_at_any_time() -> None:
    night, always = row(2, window="22:00-07:00"), row(1)
    assert chosen(night, always, now=NOON) == 1
    assert chosen(night, always, now=NIGHT) == 2
    assert chosen(night, now=NOON) is None
    assert chosen(row(1, window="22:00-07:00"), row(2, window="22:00-01:00"), now=NIGHT) == 2
    assert chosen(night, row(1, priority=6), now=NIGHT) == 1


def test_what_is_held_runs_already_or_has_to_wait_is_not_chosen() -> None:
    assert chosen(row(1, held=True), row(2, state=QueueState.RUNNING), row(3, not_before=NOON + 1)) is None
    assert chosen(row(3, not_before=NOON)) == 3


def test_a_row_runs_only_where_its_modules_are_allowed() -> None:
    assert chosen(row(1, modules=("mine",)), row(2)) == 2
    assert chosen(row(1, modules=("mine",)), row(2), modules=("mine", "other")) == 1
    assert queue.lacking(row(1, modules=("a", "b")), ("b",)) == ["a"]


def test_a_running_search_makes_room_for_a_higher_priority_and_for_no_equal_one() -> None:
    running = row(1, state=QueueState.RUNNING)
    assert queue.why_pause(running, [running, row(2)], NOON, (), UTC) is None
    why = queue.why_pause(running, [running, row(2, priority=6)], NOON, (), UTC)
    assert why == "makes room for s2 of priority 6"
    shut = row(2, priority=6, window="22:00-07:00")
    assert queue.why_pause(running, [running, shut], NOON, (), UTC) is None
    assert queue.why_pause(running, [running, shut], NIGHT, (), UTC) is not None


def test_a_running_search_pauses_as_its_window_shuts() -> None:
    running = row(1, state=QueueState.RUNNING, window="22:00-07:00")
    assert queue.why_pause(running, [running], NIGHT, (), UTC) is None
    assert queue.why_pause(running, [running], NOON, (), UTC) == "its window 22:00-07:00 has shut"
    assert queue.may_run_until(running, NIGHT, UTC) == NIGHT + 8 * 3600
    assert queue.may_run_until(row(1), NIGHT, UTC) is None


def ended(state: SearchState | None, **values: Any) -> Next:
    plain: dict[str, Any] = {
        "reason": None,
        "code": 0,
        "said": "",
        "asked": False,
        "held": False,
        "failures": 0,
    }
    return queue.after(Run(state, **plain | values))[0]


@pytest.mark.parametrize(
    ("state", "values", "becomes"),
    [
        (SearchState.FINISHED, {}, Next.END),
        (SearchState.STOPPED, {"held": True}, Next.END),
        (SearchState.FAILED, {"code": 1}, Next.END),
        (SearchState.PAUSED, {"asked": True}, Next.WAIT),  # by the runner
        (SearchState.PAUSED, {"asked": True, "held": True}, Next.HOLD),  # by a person as well
        (SearchState.PAUSED, {"held": True}, Next.HOLD),
        (SearchState.PAUSED, {}, Next.HOLD),  # by the machine's fault
        (SearchState.PAUSED, {"code": 1, "said": "the images have changed"}, Next.HOLD),
        (SearchState.RUNNING, {"code": -9}, Next.RETRY),
        (SearchState.DRAINING, {"code": 130, "failures": 1}, Next.RETRY),
        (SearchState.RUNNING, {"code": -9, "failures": 2}, Next.HOLD),
        (SearchState.RUNNING, {"code": -9, "held": True}, Next.HOLD),
        (SearchState.RUNNING, {"code": None}, Next.WAIT),  # it died with its runner
        (SearchState.DRAINING, {"code": -15, "asked": True}, Next.WAIT),
        (None, {"code": 2, "said": "data.path: no such folder"}, Next.FAIL),
        (None, {"code": -9}, Next.RETRY),
        (None, {"code": -15, "asked": True}, Next.WAIT),
    ],
)
def test_what_becomes_of_a_row(state: SearchState | None, values: dict[str, Any], becomes: Next) -> None:
    assert ended(state, **values) is becomes


def test_what_refused_a_run_is_told_in_its_own_words() -> None:
    run = Run(None, None, 2, "data.path: no such folder", False, False, 0)
    assert queue.after(run) == (Next.FAIL, "data.path: no such folder")


def test_tries_lie_further_and_further_apart() -> None:
    assert [queue.retry_at(0.0, times) for times in (1, 2)] == [30.0, 60.0]
