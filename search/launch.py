"""Starting and resuming: from a checked config to a driver, an engine, and the report at the end."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from search import leftovers, validate
from search.config import SearchConfig, from_dict
from search.driver import Driver
from search.errors import UserError
from search.states import ENDED_SEARCH, SearchState
from search.store.read.searches import search_by_name
from search.store.read.searches import searches as all_searches
from search.store.session import Store, open_store
from search.store.write import searches
from workers import device

if TYPE_CHECKING:
    from search.store.read.rows import SearchRow

INTERRUPTED = 130
Say = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """How a run ended. state: the search's. artifacts: the folder that its report belongs into."""

    search: str
    state: SearchState
    artifacts: Path


def start(config: SearchConfig, db: str | None, say: Say) -> Ended:
    """Runs a new search. Nothing is written before every check has passed.

    Raises UsageError for a config that cannot run, UserError when the name is taken.
    """
    checked = validate.check(config, time.time())
    refuse_taken_name(config.name, db)
    store = open_store(db, create=True)
    try:
        folder = Path(config.artifacts) if config.artifacts else store.artifacts_root
        artifacts = (folder / config.name).absolute()
        data = asdict(checked.plan.data) | {"num_classes": len(checked.plan.data.class_names)}
        store.write(
            lambda s: searches.create(
                s, config.name, config.to_dict(), data, str(artifacts), checked.deadline
            )
        )
        return _drive(store, checked.plan, config.name, say)
    finally:
        store.close()


def resume(name: str, overrides: Sequence[str], db: str | None, say: Say) -> Ended:
    """Goes on with a search of the database. A finished one is left as it is, unless overrides extend it.

    Raises UserError for an unknown name or when another driver is at work.
    """
    store = open_store(db, create=False)
    try:
        with store.read() as reader:
            row = search_by_name(reader, name)
        if row.state in ENDED_SEARCH and not overrides:
            say(f"search {name!r} is {row.state}; nothing is left to do")
            return Ended(name, SearchState(row.state), Path(row.artifacts))
        config = from_dict(row.config, overrides, f"search {name!r}")
        _refuse_changes(row, config)
        checked = validate.check(_without_kept_deadline(config, overrides), time.time())
        deadline = checked.deadline or row.deadline
        if deadline is not None and deadline <= time.time():
            raise UserError(
                f"search.deadline: that of {name!r} has passed; give another: "
                f"paretovit resume {name} --set search.deadline=8h"
            )
        if checked.plan.data.digest != row.data["digest"]:
            raise UserError(
                f"data: the images of {name!r} have changed since it began "
                f"(digest {checked.plan.data.digest}, then {row.data['digest']}); bring the old ones back, "
                "or start another search"
            )
        store.write(lambda s: searches.reconfigure(s, row.id, config.to_dict(), deadline))
        return _drive(store, checked.plan, name, say)
    finally:
        store.close()


def refuse_taken_name(name: str, db: str | None) -> None:
    """Raises UserError when the database is there and holds a search of that name."""
    try:
        store = open_store(db, create=False)
    except UserError:
        return
    try:
        with store.read() as reader:
            taken = {row.name for row in all_searches(reader)}
    finally:
        store.close()
    if name in taken:
        raise searches.NameTaken(name)


def _without_kept_deadline(config: SearchConfig, overrides: Sequence[str]) -> SearchConfig:
    """A deadline stays the moment that it was resolved to, unless it is given anew."""
    if any(override.partition("=")[0].strip() == "search.deadline" for override in overrides):
        return config
    return config.model_copy(update={"search": config.search.model_copy(update={"deadline": None})})


def _drive(store: Store, plan: validate.Plan, name: str, say: Say) -> Ended:
    import optuna

    from search.study import Study

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with store.read() as reader:
        row = search_by_name(reader, name)
    artifacts = Path(row.artifacts)
    artifacts.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.RDBStorage(store.optuna_url, engine_kwargs=store.optuna_engine_kwargs)
    settings = plan.config.search
    target = device.resolve(plan.config.cost.device, plan.config.cost.threads)
    driver = Driver(
        store=store,
        study=Study(storage, name, plan.space, plan.objectives, settings.sampler, settings.seed),
        search_id=row.id,
        name=name,
        plan=plan,
        device_id=target.id,
        artifacts=artifacts,
        deadline=row.deadline,
        on_event=say,
    )
    driver.start()
    try:
        with _signals(driver, name, say):
            _run_engine(driver, settings.engine, _num_workers(settings.workers))
    finally:
        driver.close()
    with store.read() as reader:
        return Ended(name, SearchState(search_by_name(reader, name).state), artifacts)


def _run_engine(driver: Driver, engine: str, num_workers: int) -> None:
    if engine == "inline":
        from search import inline

        inline.run(driver)
    else:
        from search import ray_environment

        ray_environment.prepare()
        from search import ray_engine

        ray_engine.run(driver, num_workers)


def _num_workers(workers: int | str) -> int:
    """`auto`: one a core, of those that this process may use where the system tells."""
    if isinstance(workers, int):
        return workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _signals(driver: Driver, name: str, say: Say) -> Iterator[None]:
    """The first SIGINT or SIGTERM drains; the second leaves at once, with nothing of ours left running."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if not driver.drain_wanted:
            driver.drain_wanted = "interrupted"
            say(
                "finishing what runs, starting nothing new; interrupt again to leave at once. "
                f"Go on later with: paretovit resume {name}"
            )
            return
        leftovers.clear_mine()
        sys.stderr.write(f"paretovit: left; go on with: paretovit resume {name}\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_changes(row: SearchRow, config: SearchConfig) -> None:
    """A search may be extended, not turned into another: raises UserError naming the first setting that may not."""
    old = from_dict(row.config).to_dict()
    for section, value in config.to_dict().items():
        if section in ("search", "limits") or value == old[section]:
            continue
        raise UserError(f"{section}: cannot change in a search that has begun; start another search for that")
    changed = {key for key, value in config.to_dict()["search"].items() if value != old["search"][key]}
    fixed = sorted(changed - {"max_candidates", "deadline", "workers", "engine"})
    if fixed:
        raise UserError(
            f"search.{fixed[0]}: cannot change in a search that has begun; start another for that"
        )
