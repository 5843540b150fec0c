"""What a runner starts for one search: `python -m search.cli.queued ROW CLAIM`, on the database of PARETOVIT_DB.

Ends with 0 when the search has come to a state, whichever; with 1 or 2 and its reason as the last line where it was
refused.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.errors import NoFeasibleCandidate, UserError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.launch import Ended
    from search.store.models import Queue


def main(arguments: Sequence[str]) -> int:
    """Drives the search of a row of the queue for as long as the row is claimed under that number."""
    from search.cli.packages import check_packages
    from search.store.write.queue import Withdrawn

    row, claim = map(int, arguments)
    try:
        check_packages()
        ended = _drive(row, claim)
        _end(ended)
    except Withdrawn:
        print("taken back, or taken over by another runner", flush=True)
    except NoFeasibleCandidate as error:
        print(error, flush=True)
    except UserError as error:
        print(f"paretovit: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def _drive(row_id: int, claim: int) -> Ended:
    from search import launch
    from search.cli.progress import Plain
    from search.config import from_stored
    from search.store.session import open_store
    from search.store.write import queue

    def turn(session: Session) -> Queue:
        return queue.claimed(session, row_id, claim)

    store = open_store(None, create=False)
    try:
        row = store.write(turn)
    finally:
        store.close()
    progress = Plain()
    if row.search_id is not None:
        return launch.resume(row.name, (), None, progress.line, progress.status, turn)
    config = from_stored(row.config, name=f"search {row.name!r}")
    return launch.start(config, None, progress.line, progress.status, turn)


def _end(ended: Ended) -> None:
    from search.cli.run import conclude

    conclude(ended, None)


if __name__ == "__main__":
    from search.cli.main import leave

    leave(main(sys.argv[1:]))
