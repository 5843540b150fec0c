"""Revisions on each kind of database; what they follow is tested through whole searches in `driving`."""

from __future__ import annotations

from typing import Any

import pytest

from search.states import CandidateState
from search.store.read.revision import revision, revision_of_all, revisions
from search.store.read.searches import search_by_name
from search.store.write import candidates, results


@pytest.fixture
def filled_database(fill_at: Any, database: str) -> Any:
    made = fill_at(database)
    fill_at(database, "other").store.close()
    yield made
    made.store.close()


def test_one_revision_is_the_same_alone_and_among_all(filled_database: Any) -> None:
    with filled_database.store.read() as reader:
        found = revisions(reader)
        assert set(found) == {"digits", "other"}
        for name, value in found.items():
            assert revision(reader, search_by_name(reader, name)) == value
    assert found["digits"] != found["other"]


def test_it_stays_without_a_change_and_moves_with_one_in_its_own_search(filled_database: Any) -> None:
    store = filled_database.store

    def look() -> dict[str, str]:
        with store.read() as reader:
            return revisions(reader)

    def finish(session: Any) -> None:
        candidates.set_state(candidates.by_number(session, 1, 19), CandidateState.FINISHED)

    first = look()
    assert look() == first
    store.write(lambda session: results.add_event(session, 1, "note", "more"))
    second = look()
    store.write(finish)
    third = look()
    assert len({first["digits"], second["digits"], third["digits"]}) == 3
    assert first["other"] == second["other"] == third["other"]
    assert len({revision_of_all(found) for found in (first, second, third)}) == 3
