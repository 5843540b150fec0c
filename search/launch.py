"""Starting and resuming: from a checked config to a driver, an engine, and the report at the end."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from search import energy, folders, hints, lease, leftovers, measuring_device, own_families, validate
from search.brought import Brought
from search.config import SearchConfig, from_stored
from search.driver import Driver
from search.errors import UserError
from search.lanes import LanedDriver
from search.leaving import leave, write_plainly
from search.plan import Plan
from search.states import SearchState
from search.store.read import queue
from search.store.read.candidates import candidates
from search.store.read.searches import search_by_name
from search.store.read.searches import searches as all_searches
from search.store.session import Store, open_store
from search.store.write import searches
from workers import device

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from search.store.models import Queue
    from search.store.read.rows import SearchRow

INTERRUPTED = 130
Say = Callable[[str], None]
Turn = Callable[["Session"], "Queue"]
"""Gives the row of the queue that a search is run for, in a transaction; raises `Withdrawn` if it no longer is."""


@dataclass(frozen=True)
class Ended:
    """How a run ended. state: the search's, and reason why. artifacts: the folder that its report belongs into.
    by_user: by a signal or a request."""

    search: str
    state: SearchState
    artifacts: Path
    reason: str | None = None
    by_user: bool = False


def start(
    config: SearchConfig,
    db: str | None,
    say: Say,
    show: Say = lambda _: None,
    turn: Turn | None = None,
) -> Ended:
    """Runs a new search. Nothing is written before every check has passed.

    say: told what happens, line by line. show: told how far the search is, for a line that stays. turn: in which it is
    begun, for a search out of the queue.

    Raises UsageError for a config that cannot run, UserError when the name is taken.
    """
    refuse_taken_name(config.name, db, queued=turn is not None)
    artifacts = folders.new(config, db)
    checked = validate.check_new(config, time.time())
    store = open_store(db, create=True)
    try:
        data = asdict(checked.plan.data) | {"num_classes": len(checked.plan.data.class_names)}
        data |= own_families.brought(checked.plan).to_dict()

        def create(session: Session) -> None:
            begun = searches.create(
                session, config.name, checked.plan.config.to_dict(), data, str(artifacts), checked.deadline
            )
            if turn is not None:
                turn(session).search_id = begun

        store.write(create)
        for text in (*checked.seen.warnings, *filter(None, [checked.advice])):
            say(f"warning: {text}")
        for text in checked.seen.notes:
            say(f"images: {text}")
        if checked.missing:
            say(f"baselines: {checked.baselines}")
        return _drive(
            store, checked.plan, config.name, (say, show), turn or _nothing, deadline=checked.deadline
        )
    finally:
        store.close()


def resume(
    name: str,
    overrides: Sequence[str],
    db: str | None,
    say: Say,
    show: Say = lambda _: None,
    turn: Turn | None = None,
) -> Ended:
    """Goes on with a search of the database. A finished one is left as it is, unless overrides extend it.

    say, show, turn: as for `start`.

    Raises UserError for an unknown name or when another driver is at work.
    """
    store = open_store(db, create=False)
    try:
        with store.read() as reader:
            row = search_by_name(reader, name)
        if row.state in (SearchState.FINISHED, SearchState.FAILED) and not overrides:
            say(f"search {name!r} is {row.state}; nothing is left to do")
            return Ended(name, SearchState(row.state), Path(row.artifacts))
        config = from_stored(row.config, overrides, f"search {name!r}")
        _refuse_changes(row, config)
        checked = validate.check(_without_kept_deadline(config, overrides), time.time())
        deadline = checked.deadline if _sets_deadline(overrides) else row.deadline
        is_late = deadline is not None and deadline <= time.time()
        if is_late and turn is None:  # in its turn, it ends with a report
            raise UserError(
                f"search.deadline: that of {name!r} has passed; give another: "
                f"{hints.command('resume', name, '--set', 'search.deadline=8h')}"
            )
        if checked.plan.data.digest != row.data["digest"]:
            raise UserError(
                f"data: the images of {name!r} have changed since it began "
                f"(digest {checked.plan.data.digest}, then {row.data['digest']}); bring the old ones back, "
                "or start another search"
            )
        if checked.plan.own:
            with store.read() as reader:
                rows = candidates(reader, row.id)
            own_families.check_unchanged(checked.plan, Brought.of(row.data), rows)
        values = config.to_dict()

        def prepare(session: Session) -> None:
            if turn is not None:
                turn(session)
            searches.reconfigure(session, row.id, values, deadline)

        return _drive(store, checked.plan, name, (say, show), prepare, deadline)
    finally:
        store.close()


def refuse_taken_name(name: str, db: str | None, *, queued: bool = False) -> None:
    """Raises UserError when the database is there and holds a search of that name, or its queue does. queued: whether
    the search itself comes out of the queue."""
    try:
        store = open_store(db, create=False)
    except UserError:
        return
    try:
        with store.read() as reader:
            rows = all_searches(reader)
            taken = {row.name for row in rows}
            if not queued:
                taken |= {row.name for row in queue.active(reader)}
    finally:
        store.close()
    if name in taken:
        raise searches.NameTaken(name, any(row.name == name and lease.alive(row) for row in rows))


def _nothing(session: Session) -> None:
    """What is written beside the lease where nothing is."""


def _without_kept_deadline(config: SearchConfig, overrides: Sequence[str]) -> SearchConfig:
    """A deadline stays the moment that it was resolved to, unless it is given anew."""
    if _sets_deadline(overrides):
        return config
    return config.model_copy(update={"search": config.search.model_copy(update={"deadline": None})})


def _sets_deadline(overrides: Sequence[str]) -> bool:
    return any(override.partition("=")[0].strip() == "search.deadline" for override in overrides)


def _drive(
    store: Store,
    plan: Plan,
    name: str,
    tell: tuple[Say, Say],
    prepare: Callable[[Session], object],
    deadline: float | None,
) -> Ended:
    """prepare: written together with the lease, so that a refused driver changes nothing."""
    import optuna

    from search.study import Study, open_storage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with store.read() as reader:
        row = search_by_name(reader, name)
    silent_beat = _watch(store, row, tell[0])
    artifacts = Path(row.artifacts)
    folders.claim(artifacts, row)
    leftovers.clear()
    storage = open_storage(store.optuna_url, store.optuna_engine_kwargs)
    settings = plan.config.search
    target = measuring_device.of(plan.config)
    workers = 1 if settings.engine == "inline" else num_workers(settings.workers, _trains_on(plan, target))
    driver = (Driver if plan.config.cost.label is None else LanedDriver)(
        store=store,
        study=Study(storage, name, plan.space, plan.objectives, settings.sampler, settings.seed),
        search_id=row.id,
        name=name,
        plan=plan,
        device_id=target.id,
        artifacts=artifacts,
        deadline=deadline,
        num_workers=workers,
        joules=energy.joules_of(plan.config, target),
        on_event=tell[0],
        on_status=tell[1],
    )
    driver.start(silent_beat=silent_beat, prepare=prepare)
    try:
        with _signals(driver, name):
            _run_engine(driver, settings.engine, workers)
    finally:
        with contextlib.suppress(UserError):  # a full disk, say, of which the user hears anyway
            driver.close()
    with store.read() as reader:
        row = search_by_name(reader, name)
    by_user = driver.drain_wanted is not None or driver.wanted.state is not None
    return Ended(name, SearchState(row.state), artifacts, row.reason, by_user)


def _run_engine(driver: Driver, engine: str, num_workers: int) -> None:
    if engine == "inline":
        from search import inline

        inline.run(driver)
    else:
        from search import ray_environment

        ray_environment.prepare()
        from search import ray_engine

        ray_engine.run(driver, num_workers)


def _trains_on(plan: Plan, measured: device.Device) -> device.Device:
    """Beside a node that measures, this machine's own."""
    return measured if plan.config.cost.label is None else device.resolve("auto")


def num_workers(workers: int | str, target: device.Device) -> int:
    """`auto`: one on a GPU; on a CPU one a core, of those that this process may use where the system tells."""
    if isinstance(workers, int):
        return workers
    if target.is_cuda:
        return 1
    return device.num_cores()


@contextmanager
def _signals(driver: Driver, name: str) -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP drains; the second leaves at once, with nothing of ours left running."""

    resume = hints.command("resume", name)

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if not driver.drain_wanted:
            driver.drain_wanted = "drained by a signal"
            write_plainly(
                "finishing what runs, starting nothing new; interrupt again to leave at once. "
                f"Go on later with: {resume}"
            )
            return
        leftovers.clear_mine()
        leave(INTERRUPTED, f"left; go on with: {resume}")

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before[number] = signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(store: Store, row: SearchRow, say: Say) -> int | None:
    """The counter of a driver on another host that did not move for a whole TTL; None where there is none to watch.

    Raises UserError as soon as it moves. Clocks of two hosts are not compared.
    """
    if row.owner_host is None or lease.is_here(row):
        return None
    say(
        f"driven from {row.owner_host} at last; watching for {lease.TTL_SECONDS:g} s whether that driver is alive"
    )
    end = time.monotonic() + lease.TTL_SECONDS
    while time.monotonic() < end:
        time.sleep(1.0)
        with store.read() as reader:
            now = search_by_name(reader, row.name)
        if now.beat != row.beat:
            raise UserError(f"search {row.name!r} is driven by process {row.owner_pid} on {row.owner_host}")
    return row.beat


def _refuse_changes(row: SearchRow, config: SearchConfig) -> None:
    """A search may be extended, not turned into another: raises UserError naming the first setting that may not."""
    old = from_stored(row.config).to_dict()
    for section, value in config.to_dict().items():
        if section in ("search", "budget", "limits", "notify") or value == old[section]:
            continue
        raise UserError(f"{section}: cannot change in a search that has begun; start another search for that")
    changed = {key for key, value in config.to_dict()["search"].items() if value != old["search"][key]}
    fixed = sorted(changed - {"max_candidates", "deadline", "workers", "engine", "screen"})
    if fixed:
        raise UserError(
            f"search.{fixed[0]}: cannot change in a search that has begun; start another for that"
        )
