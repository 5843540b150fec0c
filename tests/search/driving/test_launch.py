"""Real, tiny searches in this process: from a config to an end, and on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from optuna.exceptions import StorageInternalError
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from search import launch
from search.config import from_dict
from search.errors import UsageError, UserError
from search.states import TERMINAL_CANDIDATE, CandidateState, SearchState
from search.store.models import Attempt, Candidate, Search
from search.store.session import open_store
from search.store.write.searches import NameTaken
from workers.knobs import knobs_of
from workers.settings import RecipeSettings

CONFIG: dict[str, Any] = {
    "name": "mini",
    "data": {"source": "digits", "train_limit": 100, "val_limit": 50},
    "space": {
        "preset": "tiny",
        "families": ["vit"],
        "vit": {"depth": [1, 2], "heads": [1], "head_width": [16]},
    },
    "training": {"epochs": 2, "batch_size": 50},
    "cost": {"device": "cpu", "max_seconds": 0.05},
    "search": {"max_candidates": 3, "rungs": [1, 2], "engine": "inline"},
}


def rows(db: str, model: Any) -> list[Any]:
    store = open_store(db, create=False)
    try:
        return store.write(lambda s: s.query(model).order_by(model.id).all())
    finally:
        store.close()


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database whose search `mini` has ended."""
    path = str(tmp_path_factory.mktemp("launch") / "mini.db")
    said: list[str] = []
    ended = launch.start(from_dict(CONFIG), path, said.append)
    assert ended.state == SearchState.FINISHED
    assert ended.artifacts == Path(f"{path}.artifacts/mini")
    return path


def test_an_ended_search_is_left_as_it_is(db: str) -> None:
    before = len(rows(db, Attempt))
    said: list[str] = []
    assert launch.resume("mini", (), db, said.append).state == SearchState.FINISHED
    assert "nothing is left to do" in said[0]
    assert len(rows(db, Attempt)) == before


def test_a_taken_name_offers_to_resume(db: str) -> None:
    with pytest.raises(NameTaken, match="paretovit resume mini"):
        launch.start(from_dict(CONFIG), db, print)


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("training.epochs=3", "training"),
        ("objectives=[accuracy, params]", "objectives"),
        ("search.seed=1", "search.seed"),
        ("search.rungs=none", "search.rungs"),
    ],
)
def test_what_a_search_stands_on_cannot_change(db: str, override: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        launch.resume("mini", [override], db, print)


def test_an_extension_repeats_nothing(db: str) -> None:
    old = {c.number: (c.digest, c.state) for c in rows(db, Candidate) if c.number > 0}
    attempts = len(rows(db, Attempt))
    ended = launch.resume("mini", ["search.max_candidates=4"], db, print)
    assert ended.state == SearchState.FINISHED
    found = {c.number: (c.digest, c.state) for c in rows(db, Candidate) if c.number > 0}
    assert sorted(found) == [1, 2, 3, 4]
    assert {n: found[n] for n in old} == old
    assert CandidateState(found[4][1]) in TERMINAL_CANDIDATE
    assert attempts < len(rows(db, Attempt)) <= attempts + 3


def test_a_folder_of_another_databases_search_is_refused(db: str, tmp_path: Path) -> None:
    same_folder = CONFIG | {"artifacts": f"{db}.artifacts"}
    with pytest.raises(UserError, match="another database"):
        launch.start(from_dict(same_folder), str(tmp_path / "other.db"), print)


def test_a_folder_with_files_of_the_users_is_refused_and_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "mini" / "checkpoints" / "1" / "best.safetensors"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        launch.start(from_dict(CONFIG | {"artifacts": str(tmp_path)}), str(tmp_path / "new.db"), print)
    assert own.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mini"]


@pytest.mark.parametrize("artifacts", [None, "images", "images/cat"])
def test_a_folder_among_the_images_is_refused(
    tmp_path: Path, artifacts: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "images")
    data = {"source": "folder", "path": str(tmp_path / "images")}
    values = CONFIG | {"data": data, "artifacts": artifacts and str(tmp_path / artifacts)}
    with pytest.raises(UsageError, match="would lie among the images"):
        launch.start(from_dict({k: v for k, v in values.items() if v}), None, print)
    assert sorted(path.name for path in Path().iterdir()) == ["cat", "dog"]


def test_a_resumed_search_deletes_unknown_checkpoints_of_its_own_and_nothing_else(tmp_path: Path) -> None:
    path = str(tmp_path / "mini.db")
    ended = launch.start(from_dict(CONFIG), path, print)
    folder = ended.artifacts / "checkpoints"
    unknown = folder / "1" / "99-1-epoch1.safetensors"
    unfinished = folder / "1" / ".99-1-epoch1.safetensors.123.partial" / ".tmpAbC123"
    by_older_version = folder / "1" / ".98-1-epoch1.safetensors.123.partial"
    own = [folder / "1" / "notes.txt", folder / "mine" / "best.safetensors", folder / "readme"]
    for file in (unknown, unfinished, by_older_version, *own):
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    launch.resume("mini", ["search.max_candidates=4"], path, print)
    assert not unknown.exists()
    assert not unfinished.parent.exists()
    assert not by_older_version.exists()
    assert all(file.exists() for file in own)


def test_a_search_that_an_older_version_began_is_extended_with_the_recipe_that_it_had(tmp_path: Path) -> None:
    """It stored every value, and knew of no other recipe for fresh weights."""
    path = str(tmp_path / "mini.db")
    launch.start(from_dict(CONFIG), path, print)
    older = asdict(knobs_of(RecipeSettings(recipe="plain"), False)) | {
        "recipe": "auto",
        "warmup_epochs": None,
    }
    known = (
        "recipe",
        "learning_rate",
        "weight_decay",
        "warmup_epochs",
        "label_smoothing",
        "stochastic_depth",
    )
    training = (
        CONFIG["training"] | {"seed": 0} | {name: older[name] for name in (*known, "ema_decay", "max_shift")}
    )
    store = open_store(path, create=False)
    store.write(lambda s: s.execute(update(Search).values(config=stored_with(s, training))))
    store.close()
    before = len(rows(path, Candidate))
    launch.resume("mini", ["search.max_candidates=4"], path, print)
    (row,) = rows(path, Search)
    assert row.config["training"] == training | {
        key: value for key, value in row.config["training"].items() if key not in training
    }
    assert row.config["training"]["fresh_recipe"] == "plain"
    assert len(rows(path, Candidate)) == before + 1
    assert {row.state for row in rows(path, Candidate)} <= set(TERMINAL_CANDIDATE)


def stored_with(session: Any, training: dict[str, Any]) -> dict[str, Any]:
    """The stored config of the only search, with its training replaced."""
    return session.query(Search).one().config | {"training": training}


def test_trouble_of_optunas_storage_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageInternalError("the commit failed") from OperationalError("", {}, Exception("no room"))

    monkeypatch.setattr("optuna.storages.RDBStorage.set_trial_state_values", fail)
    with pytest.raises(UserError, match="Optuna's tables in the database cannot be written: no room"):
        launch.start(from_dict(CONFIG), str(tmp_path / "mini.db"), print)


def test_a_passed_deadline_is_asked_for_again(db: str) -> None:
    from search.store.models import Search

    store = open_store(db, create=False)
    store.write(lambda s: setattr(s.query(Search).one(), "deadline", 1.0))
    store.close()
    with pytest.raises(UserError, match=r"--set search\.deadline"):
        launch.resume("mini", ["search.max_candidates=5"], db, print)
