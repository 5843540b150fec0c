from __future__ import annotations

import pytest

from search.requests import GO_ON, Ask, Asked, Wanted, fold
from search.states import SearchState

PAUSE, RESUME, STOP = Asked(Ask.PAUSE), Asked(Ask.RESUME), Asked(Ask.STOP)
STOP_NOW = Asked(Ask.STOP, now=True)


@pytest.mark.parametrize(
    ("asked", "state", "now"),
    [
        ((), None, False),
        ((PAUSE,), SearchState.PAUSED, True),
        ((STOP,), SearchState.STOPPED, False),
        ((STOP_NOW,), SearchState.STOPPED, True),
        ((PAUSE, RESUME), None, False),
        ((RESUME, PAUSE), SearchState.PAUSED, True),
        ((PAUSE, STOP), SearchState.STOPPED, False),
        ((STOP, PAUSE), SearchState.STOPPED, False),
        ((STOP, STOP_NOW), SearchState.STOPPED, True),
        ((STOP_NOW, STOP), SearchState.STOPPED, True),
        ((STOP, RESUME), None, False),
        ((STOP_NOW, RESUME, STOP), SearchState.STOPPED, False),
    ],
)
def test_the_last_request_counts_and_a_stop_outweighs_a_pause(
    asked: tuple[Asked, ...], state: SearchState | None, now: bool
) -> None:
    wanted = fold(asked)
    assert (wanted.state, wanted.now) == (state, now)


def test_the_reason_is_that_of_the_request_that_counts() -> None:
    assert fold([Asked(Ask.PAUSE, text="lunch")]).reason == "paused on request: lunch"
    assert fold([Asked(Ask.PAUSE, text="lunch"), STOP]).reason == "stopped on request"
    assert fold([PAUSE, RESUME]) == GO_ON == Wanted()
