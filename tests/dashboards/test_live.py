from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dashboards import live
from dashboards.live import Change, Changes
from search.store.location import locate
from search.store.readonly import ReadOnlyStore

SECONDS = 0.02


def changes(path: Path, seconds: float = SECONDS) -> Changes:
    return Changes(ReadOnlyStore(locate(str(path))), seconds)


async def gather(
    found: Changes, into: list[Change], name: str | None = None, since: str | None = None
) -> None:
    async for change in found.follow(name, since):
        into.append(change)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def scene(body: Callable[[asyncio.TaskGroup], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            await body(tasks)

    asyncio.run(run())


def note(filled: Any) -> None:
    from search.store.write import results

    filled.store.write(lambda session: results.add_event(session, 1, "note", "more"))


def test_a_change_is_told_once_with_its_search_and_revision(filled: Any, fill_at: Any) -> None:
    fill_at(filled.path, "other").store.close()
    found = changes(filled.path)
    everything: list[Change] = []
    one: list[Change] = []
    other: list[Change] = []

    async def body(tasks: asyncio.TaskGroup) -> None:
        for into, name in ((everything, None), (one, "digits"), (other, "other")):
            tasks.create_task(gather(found, into, name))
        await until(lambda: found._seen is not None)
        await asyncio.sleep(5 * SECONDS)
        assert everything == one == []
        note(filled)
        await until(lambda: bool(everything and one))
        await asyncio.sleep(5 * SECONDS)
        found.close()

    scene(body)
    now = live.look(ReadOnlyStore(locate(str(filled.path))))
    assert everything == [Change(now.of(None), ("digits",))]
    assert one == [Change(now.of("digits"), ("digits",))]
    assert other == []


def test_what_a_listener_has_missed_is_told_at_once_and_what_it_knows_is_not(filled: Any) -> None:
    now = live.look(ReadOnlyStore(locate(str(filled.path))))
    found = changes(filled.path)
    missed: list[Change] = []
    knows: list[Change] = []

    async def body(tasks: asyncio.TaskGroup) -> None:
        tasks.create_task(gather(found, missed, "digits", "an-older-one"))
        tasks.create_task(gather(found, knows, "digits", now.of("digits")))
        await until(lambda: bool(missed))
        await asyncio.sleep(5 * SECONDS)
        found.close()

    scene(body)
    assert missed == [Change(now.of("digits"), ("digits",))]
    assert knows == []


def test_all_listeners_share_one_look_and_nobody_looks_for_nobody(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = live.look

    def counted(store: ReadOnlyStore) -> live.Seen:
        nonlocal looks
        looks += 1
        return look(store)

    monkeypatch.setattr(live, "look", counted)
    found = changes(filled.path, seconds=0.2)

    async def body(tasks: asyncio.TaskGroup) -> None:
        listeners = [tasks.create_task(gather(found, [], "digits")) for _ in range(20)]
        await until(lambda: looks >= 2)
        assert looks <= 3
        for listener in listeners:
            listener.cancel()
        await asyncio.sleep(0.05)
        before = looks
        await asyncio.sleep(0.5)
        assert looks == before
        later = tasks.create_task(gather(found, [], "digits"))
        await until(lambda: looks > before)
        later.cancel()

    scene(body)


def test_a_database_that_comes_goes_and_comes_back_is_a_change_each_time(filled: Any) -> None:
    filled.store.close()
    away = filled.path.with_name("away.db")
    filled.path.rename(away)
    found = changes(filled.path)
    everything: list[Change] = []

    async def body(tasks: asyncio.TaskGroup) -> None:
        tasks.create_task(gather(found, everything))
        await until(lambda: found._seen is not None)
        away.rename(filled.path)
        await until(lambda: len(everything) == 1)
        filled.path.rename(away)
        await until(lambda: len(everything) == 2)
        away.rename(filled.path)
        await until(lambda: len(everything) == 3)
        found.close()

    scene(body)
    assert [change.searches for change in everything] == [("digits",)] * 3
    assert everything[0].revision == everything[2].revision != everything[1].revision


def test_closing_ends_all_listeners_at_once_and_later_ones_too(filled: Any) -> None:
    found = changes(filled.path, seconds=60.0)

    async def body(tasks: asyncio.TaskGroup) -> None:
        for _ in range(5):
            tasks.create_task(gather(found, []))
        await until(lambda: found._seen is not None)
        found.close()

    begun = time.monotonic()
    scene(body)
    assert time.monotonic() - begun < 5
    asyncio.run(gather(found, []))


def test_a_look_that_fails_ends_the_streams_instead_of_leaving_them_silent(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_store: ReadOnlyStore) -> live.Seen:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(live, "look", broken)
    found = changes(filled.path)

    async def run() -> None:
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
        async with asyncio.timeout(5):
            await gather(found, [])

    asyncio.run(run())


def test_rows_that_nobody_of_ours_wrote_are_unreadable_and_not_the_end(filled: Any) -> None:
    from sqlalchemy import text

    filled.store.write(lambda session: session.execute(text("UPDATE search SET state = 'dreaming'")))
    seen = live.look(ReadOnlyStore(locate(str(filled.path))))
    assert seen.revisions == {}
    assert seen.of(None) != live.Seen().of(None)
