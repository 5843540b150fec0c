"""Keeps what a driver remembers, and Optuna, abreast of the candidates' rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from search import gate, news
from search.errors import UserError
from search.memory import Memory
from search.schedule import Schedule
from search.states import TERMINAL_CANDIDATE, CandidateState, SearchState
from search.store.models import Candidate, Search
from search.store.write import candidates, searches
from search.study import Study

Write = Callable[[Callable[[Session, Search], Any]], Any]
"""One transaction under the driver's lease."""


@dataclass(frozen=True)
class Ledger:
    """Of one driver. tell: told in words what has become of a candidate. show: how far the search is."""

    search_id: int
    memory: Memory
    schedule: Schedule
    study: Study
    write: Write
    tell: Callable[[str], None]
    show: Callable[[str], None]

    def read_back(self) -> None:
        """Looks at all candidates. Raises UserError when the search has failed with one."""
        for row in self.write(lambda s, _: candidates.all_of(s, self.search_id)):
            self._look_at(row)

    def after(self, number: int) -> None:
        """After a commit that concerned a candidate: look at it again, and tell Optuna if it has ended.

        Raises UserError when the search has failed with it.
        """
        row = self.write(lambda s, _: candidates.by_number(s, self.search_id, number))
        before = self.memory.states.get(number)
        self._look_at(row)
        text = news.of_candidate(row, self.memory.plan, self.memory.limits)
        if text is not None and row.state != before:
            self.tell(text)
        states = [seen.state for seen in self.memory.seen.values()]
        self.show(news.of_search(states, self.memory.plan))
        if number > 0 and CandidateState(row.state) in TERMINAL_CANDIDATE:
            self._tell_optuna(row)

    def tell_untold(self) -> None:
        """Tells Optuna how those ended that it has not heard of."""
        for row in self.write(lambda s, _: candidates.untold(s, self.search_id)):
            self._tell_optuna(row)

    def _look_at(self, row: Candidate) -> None:
        self.memory.look_at(row)
        self.schedule.look_at(row)
        reason = self.memory.why_failed(row)
        if reason is not None:
            self.write(lambda _, search: searches.set_state(search, SearchState.FAILED, reason))
            raise UserError(reason)

    def _tell_optuna(self, row: Candidate) -> None:
        """And notes that it was told."""
        assert row.trial is not None
        values = None
        if row.state == CandidateState.FINISHED:
            values = [float(row.measured[objective.name]) for objective in self.memory.plan.objectives]
        violations = gate.violations(self.memory.limits, row.measured)
        self.study.tell(row.trial, CandidateState(row.state), values, violations)
        self.write(lambda s, _: candidates.mark_told(s, self.search_id, row.number))
