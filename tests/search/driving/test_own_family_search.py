"""Searches of a family of the user's own: in this process, and through the command line on Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search import launch
from search.config import load
from search.errors import UserError
from search.states import SearchState
from search.store.models import Candidate
from search.store.session import open_store

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "examples" / "own-family.yaml")
SHORT = (
    "training.epochs=1",
    "search.max_candidates=2",
    "search.rungs=none",
    "cost.max_seconds=0.05",
    "cost.device=cpu",
    "data.train_limit=200",
    "data.val_limit=100",
    "space.families=['own_family:Mixer']",
    "baselines={}",
)


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's module may be imported in this process."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("PARETOVIT_PLUGINS", "own_family")


@pytest.mark.usefixtures("allowed")
def test_a_search_of_the_example_trains_networks_of_the_users_own(tmp_path: Path) -> None:
    db = str(tmp_path / "own.db")
    ended = launch.start(load(EXAMPLE, [*SHORT, "search.engine=inline"]), db, print)
    assert ended.state == SearchState.FINISHED
    store = open_store(db, create=False)
    rows = store.write(lambda s: s.query(Candidate).order_by(Candidate.number).all())
    store.close()
    assert [(row.family, row.state) for row in rows] == [("mixer", "finished")] * 2
    for row in rows:
        assert row.spec["model"] == "own_mixer"
        assert row.measured["params"] == row.analysis["params"]
        assert row.measured["flops"] == row.analysis["flops"] > 0
        assert row.measured["latency_ms"] > 0
        assert row.measured["accuracy"] > 0


@pytest.mark.usefixtures("allowed")
def test_a_search_goes_on_with_the_class_that_it_began_with_and_with_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from own_family import Mixer  # pyright: ignore[reportMissingImports]

    db = str(tmp_path / "own.db")
    launch.start(load(EXAMPLE, [*SHORT, "search.engine=inline", "search.max_candidates=1"]), db, print)
    with monkeypatch.context() as changed:
        changed.setattr(Mixer, "rules", lambda self, task: [])
        changed.setattr(Mixer, "ranges", Mixer.limits)
        with pytest.raises(
            UserError, match="own_family:Mixer: its dimensions have changed since the search began"
        ):
            launch.resume("own-family", ["search.max_candidates=2"], db, print)
    ended = launch.resume("own-family", ["search.max_candidates=2"], db, print)
    assert ended.state == SearchState.FINISHED
    store = open_store(db, create=False)
    assert store.write(lambda s: [row.state for row in s.query(Candidate)]) == ["finished"] * 2
    store.close()


@pytest.mark.usefixtures("allowed")
def test_a_family_that_fails_in_the_middle_of_a_search_pauses_it_in_a_line(
    make_bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from own_family import Mixer  # pyright: ignore[reportMissingImports]

    bench = make_bench(space={"families": ["own_family:Mixer"]}, baselines={})
    driver = bench.driver()
    bench.run(driver, most=2)
    with monkeypatch.context() as broken:
        broken.setattr(Mixer, "spec", lambda self, task, values: values["heads"])
        with pytest.raises(UserError) as found:
            bench.run(driver)
    text = str(found.value)
    assert text.startswith("space.families: own_family:Mixer: spec(task, {'patch_size': ")
    assert "raises KeyError: 'heads'; mend that, then: paretovit resume" in text
    assert len(text.splitlines()) == 1
    driver.close()
    again = bench.driver()
    bench.run(again)
    assert len([row for row in bench.rows(Candidate) if row.number > 0]) == 12


class Ran:
    """The command line in a process of its own, with or without the module on its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PARETOVIT_")}
        search = [str(ROOT), path] if path else [str(ROOT)]
        environment = kept | {"PYTHONPATH": os.pathsep.join(search), "PARETOVIT_DB": "own.db"}
        command = [sys.executable, "-m", "search.cli.main", *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A folder in which the example was run on Ray, by the command that it shows."""
    folder = tmp_path_factory.mktemp("own")
    command = Ran(folder)
    path = os.path.relpath(ROOT / "examples", folder)
    sets = [word for each in (*SHORT, "search.workers=1") for word in ("--set", each)]
    done = command("--plugin", "own_family", "run", EXAMPLE, *sets, path=path)
    assert done.returncode == 0, done.stderr
    assert "mixer" in done.stdout
    return command


def test_workers_on_ray_have_the_module_and_candidates_finish(ran: Ran) -> None:
    front = json.loads(ran("front", "own-family", "--all", "--json").stdout)
    assert [(one["family"], one["state"]) for one in front["candidates"]] == [("mixer", "finished")] * 2


def test_what_reads_needs_no_plugin_and_says_how_to_rebuild(ran: Ran) -> None:
    shown = ran("show", "own-family", "1")
    assert shown.returncode == 0, shown.stderr
    (line,) = [line for line in shown.stdout.splitlines() if "rebuild" in line]
    line = line.partition("rebuild")[2].strip()
    assert line.startswith("import timm, own_family; timm.create_model('own_mixer', ")
    for words in (["status"], ["pick", "own-family", "--knee"], ["report", "own-family", "--to", "r.html"]):
        done = ran(*words)
        assert done.returncode == 0, done.stderr
    assert "import timm, own_family; timm.create_model" in (ran.folder / "r.html").read_text()
    found = json.loads(ran("show", "own-family", "1", "--json").stdout)
    assert found["module"] == "own_family"
    pasted = line.replace("; ", "; print(sum(p.numel() for p in ", 1) + ".parameters()))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")])}
    built = subprocess.run(
        [sys.executable, "-c", pasted],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.stdout == f"{found['analysis']['params']}\n", built.stderr


def test_going_on_without_the_plugin_says_which_is_missing(ran: Ran) -> None:
    done = ran("resume", "own-family", "--set", "search.max_candidates=3", path=str(ROOT / "examples"))
    assert done.returncode == 2
    assert done.stderr == (
        "paretovit: search 'own-family': space.families: own_family:Mixer: its module was not allowed as this process "
        "started; start it as: paretovit --plugin own_family ...\n"
    )


def test_an_export_says_that_it_cannot_bring_the_users_code_along(ran: Ran) -> None:
    for words in ([], ["--plugin", "own_family"]):
        done = ran(*words, "export", "own-family", "1", "--to", "out", path=str(ROOT / "examples"))
        assert done.returncode == 1
        assert "model 'own_mixer' is neither timm's nor paretovit's" in done.stderr
        assert "an export cannot bring its code along" in done.stderr
        assert not (ran.folder / "out").exists()
