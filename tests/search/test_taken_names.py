"""What is said of a search whose name is taken: how to go on with that one, or to look at it where it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from search import launch, lease
from search.store.session import open_store
from search.store.write import searches
from search.store.write.searches import NameTaken


@pytest.mark.parametrize(
    ("runs", "said"), [(True, "is running; look at it by `paretovit watch mini"), (False, "resume mini")]
)
def test_resume_is_not_offered_for_a_search_that_runs(tmp_path: Path, runs: bool, said: str) -> None:
    db = str(tmp_path / "a.db")
    store = open_store(db, create=True)

    def add(session: Session) -> Any:
        number = searches.create(session, "mini", {}, {}, "x", None)
        return searches.take(session, number, lease.this_process(), None) if runs else None

    store.write(add)
    store.close()
    with pytest.raises(NameTaken) as caught:
        launch.refuse_taken_name("mini", db)
    assert said in str(caught.value)
    assert ("resume" in str(caught.value)) != runs
