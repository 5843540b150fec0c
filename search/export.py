"""Which trained network of a search is exported, and what is known of it; `workers.bundle.export` writes the folder."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from search import hints
from search.began import Began, of_candidate
from search.errors import UserError
from search.front import FrontPoint, FrontView, front_view
from search.holding import held
from search.states import REMOVED, CandidateState
from search.store.read.candidates import find
from search.store.read.results import artifacts
from search.store.read.status import iso
from workers.bundle.request import Request, Source
from workers.counting import counted
from workers.errors import ExportError
from workers.job import CheckpointRef
from workers.settings import DataSettings

if TYPE_CHECKING:
    from search.store.read.rows import CandidateRow, SearchRow
    from search.store.reader import Reader
    from workers.bundle.export import Contents, Exported
    from workers.bundle.verify import Verified


@dataclass(frozen=True)
class Wanted:
    """A finished candidate or baseline that is to be exported. point: as it stands in `view`. began: what its training
    began from and learnt from."""

    request: Request
    point: FrontPoint
    view: FrontView
    began: Began

    @property
    def label(self) -> str:
        """`#17 of flowers`."""
        return _label(self.view.search, self.point.row)


def prepare(
    reader: Reader, search: SearchRow, which: str, *, onnx: bool = False, images: bool = True
) -> Wanted:
    """What is wanted, from the database alone. which: a candidate's number or a baseline's name. onnx, images: see
    `Request`.

    Raises UserError for what is not there, and for what has not been trained in full, with its state and the reason.
    """
    row = find(reader, search.id, which)
    _refuse_untrained(search, row)
    files = [a for a in artifacts(reader, search.id, row.id) if a.epoch == row.epoch]
    kept = [a for a in files if a.kind == "checkpoint"]
    if not kept and any(a.kind == REMOVED for a in files):
        raise UserError(
            f"{_label(search, row)}: its checkpoint was removed to make room on the disk, and its network is not there "
            f"any more; choose one of the front, which keep theirs: {hints.command('front', search.name)}"
        )
    if not kept:
        raise UserError(f"{_label(search, row)}: the database knows no checkpoint of epoch {row.epoch}")
    last = kept[-1]
    view = front_view(reader, search)
    point = next(p for p in (*view.baselines, *view.candidates) if p.row.id == row.id)
    request = Request(
        spec=row.spec,
        artifacts=search.artifacts,
        checkpoint=CheckpointRef(last.path, row.epoch, last.sha256, last.num_bytes),
        source=_source(search),
        onnx=onnx,
        images=images,
    )
    return Wanted(request, point, view, of_candidate(reader, search, row))


def write(wanted: Wanted, target: Path, card: Callable[[Contents], str]) -> Exported:
    """Makes the folder and checks it. Raises UserError, and KeyboardInterrupt on SIGTERM and SIGHUP too; then `target`
    is as it was before."""
    from workers.bundle.folder import check

    try:
        check(target)
        _check_there(wanted)
        checkpoint = Path(wanted.request.artifacts, wanted.request.checkpoint.path)
        with _interrupted_by_signals(), held(checkpoint):
            from workers.bundle.export import export

            return export(wanted.request, target, card, _facts(wanted))
    except ExportError as error:
        raise UserError(str(error)) from error


def verify(folder: Path) -> Verified:
    """Checks an exported folder. Raises UserError naming the file that is not as it should be, and KeyboardInterrupt as
    `write` does."""
    from workers.bundle.verify import verify as check

    try:
        with _interrupted_by_signals():
            return check(folder)
    except ExportError as error:
        raise UserError(str(error)) from error


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, once, so that what was begun is undone as after an error."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGTERM, signal.SIGHUP)
        # What is ignored stays so: under nohup a terminal may close.
        before = {n: h for n in numbers if (h := signal.getsignal(n)) not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_untrained(search: SearchRow, row: CandidateRow) -> None:
    what, epochs = _label(search, row), search.config["training"]["epochs"]
    trained = f"{row.epoch} of {counted(epochs, 'epoch')}"
    reason = f": {row.reason}" if row.reason else ""
    if row.state == CandidateState.FINISHED:
        return
    if row.state == CandidateState.FAILED:
        raise UserError(f"{what} failed and has no trained network to export{reason}")
    if row.state == CandidateState.REJECTED:
        raise UserError(f"{what} was rejected and never trained{reason}")
    if row.state == CandidateState.STOPPED:
        raise UserError(f"{what} was stopped after {trained}, so it is not trained in full{reason}")
    raise UserError(
        f"{what} is {row.state}, with {trained} trained: only what is finished can be exported, and the search is "
        f"{search.state}"
    )


def _check_there(wanted: Wanted) -> None:
    """A missing checkpoint is told before torch is loaded."""
    path = Path(wanted.request.artifacts, wanted.request.checkpoint.path)
    if not path.exists():
        raise UserError(
            f"{wanted.label}: its checkpoint {path} is missing; bring the search's artifacts back to where they were"
        )


def _source(search: SearchRow) -> Source:
    data = search.data
    return Source(
        settings=DataSettings(**search.config["data"]),
        digest=data["digest"],
        image_size=data["image_size"],
        channels=data["channels"],
        class_names=tuple(data["class_names"]),
    )


def _facts(wanted: Wanted) -> dict[str, Any]:
    """For the manifest: figures as the front has them, and how each was taken."""
    point, view = wanted.point, wanted.view
    row = point.row
    return {
        "paretovit": version("paretovit"),
        "exported": iso(time.time()),
        "search": view.search.name,
        "candidate": row.number,
        "name": row.name,
        "standing": str(point.standing),
        "digest": row.digest,
        "data_digest": wanted.request.source.digest,
        "epochs": row.epoch,
        "values": dict(point.values),
        "intervals": {name: list(bounds) for name, bounds in point.intervals.items()},
        "conditions": None if view.conditions is None else asdict(view.conditions),
        "measured_how": {name: how for name, how in view.measured_how.items() if name in point.values},
    }


def _label(search: SearchRow, row: CandidateRow) -> str:
    return f"{row.name or 'baseline' if row.is_baseline else f'#{row.number}'} of {search.name}"
