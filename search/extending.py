"""What goes on that had ended: candidates stopped in a search that is extended, or rejected by a figure that was
wrong."""

from __future__ import annotations

from sqlalchemy.orm import Session

from search import drifting
from search.ledger import Ledger
from search.settle import Settler
from search.store.models import Candidate, Search
from search.store.write import candidates


def take_up(ledger: Ledger, settler: Settler) -> None:
    """Each under a new Optuna trial."""
    memory = ledger.memory

    def those(session: Session, search: Search) -> list[Candidate]:
        wronged = drifting.readmissible(session, ledger.search_id, memory.limits)
        return [*candidates.to_take_up(session, search), *wronged]

    for row in ledger.write(those):
        trial = ledger.study.ask_again(row.point) if row.number > 0 else None

        def work(session: Session, _: Search, number: int = row.number, trial: int | None = trial) -> None:
            again = candidates.by_number(session, ledger.search_id, number)
            settler.take_up(session, again, trial, memory.baselines)

        ledger.write(work)
        ledger.after(row.number)
