"""What may be exported, and what is said of it; the folders themselves are tested in tests/workers/bundle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from search import export
from search.errors import UserError
from search.front import front_view
from search.store.models import Artifact, Candidate
from search.store.read.searches import search_by_name

STATES = ("stopped", "rejected", "failed", "waiting", "training", "measured", "proposed")


def prepare(filled: Any, which: str) -> export.Wanted:
    with filled.store.read() as reader:
        return export.prepare(reader, search_by_name(reader, filled.name), which)


def number_of(filled: Any, state: str) -> int:
    return filled.store.write(lambda s: s.query(Candidate).filter_by(state=state).first().number)


def test_a_finished_candidate_is_wanted_with_its_last_checkpoint(filled: Any) -> None:
    wanted = prepare(filled, "5")
    assert wanted.label == "#5 of digits"
    assert wanted.request.checkpoint.path == "checkpoints/5/1/12.safetensors"
    assert wanted.request.checkpoint.epoch == 12
    assert wanted.request.spec == wanted.point.row.spec
    assert wanted.request.source.class_names == tuple("0123456789")
    assert prepare(filled, "#5") == wanted


def test_its_figures_are_the_fronts(filled: Any) -> None:
    with filled.store.read() as reader:
        view = front_view(reader, search_by_name(reader, "digits"))
    point = next(p for p in view.front if p.row.number == 5)
    facts = json.loads(json.dumps(export._facts(prepare(filled, "5")), allow_nan=False))
    assert facts["values"] == point.values
    assert facts["intervals"]["accuracy"] == list(point.intervals["accuracy"])
    assert facts["measured_how"] == {name: view.measured_how[name] for name in point.values}
    assert (facts["search"], facts["candidate"], facts["standing"]) == ("digits", 5, "front")
    assert facts["conditions"]["device_name"] == "Example CPU"


def test_a_baseline_is_exported_by_its_name(filled: Any) -> None:
    wanted = prepare(filled, "resnet")
    assert wanted.label == "resnet of digits"
    assert export._facts(wanted)["name"] == "resnet"


def test_a_finished_candidate_off_the_front_may_be_exported(filled: Any) -> None:
    with filled.store.read() as reader:
        view = front_view(reader, search_by_name(reader, "digits"))
    dominated = next(p for p in view.candidates if p.standing == "dominated")
    assert prepare(filled, str(dominated.row.number)).point.standing == "dominated"


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_trained_in_full_is_refused_with_its_state(filled: Any, state: str) -> None:
    number = number_of(filled, state)
    with pytest.raises(UserError) as found:
        prepare(filled, str(number))
    said = str(found.value)
    assert said.startswith(f"#{number} of digits ")
    assert state in said
    assert len(said.splitlines()) == 1
    assert found.value.exit_code == 1


def test_the_reason_of_a_refusal_is_the_candidates_own(filled: Any) -> None:
    for state, reason in (("failed", "loss is not finite in epoch 2"), ("rejected", "is above its limit")):
        with pytest.raises(UserError, match=reason):
            prepare(filled, str(number_of(filled, state)))
    with pytest.raises(UserError, match="was stopped after 4 of 12 epochs"):
        prepare(filled, str(number_of(filled, "stopped")))
    with pytest.raises(
        UserError, match=r"is waiting, with 4 of 12 epochs trained: .* the search is finished"
    ):
        prepare(filled, str(number_of(filled, "waiting")))


def test_a_baseline_that_has_not_finished_is_refused(filled: Any) -> None:
    filled.store.write(lambda s: setattr(s.query(Candidate).filter_by(number=-1).one(), "state", "training"))
    with pytest.raises(UserError, match="resnet of digits is training"):
        prepare(filled, "resnet")


@pytest.mark.parametrize(("which", "said"), [("99", "there are 1 to 22"), ("vgg", "there are: resnet")])
def test_an_unknown_candidate_is_told_what_there_is(filled: Any, which: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare(filled, which)


def test_a_checkpoint_that_the_database_does_not_know_is_said(filled: Any) -> None:
    filled.store.write(lambda s: s.query(Artifact).filter_by(path="checkpoints/5/1/12.safetensors").delete())
    with pytest.raises(UserError, match="#5 of digits: the database knows no checkpoint of epoch 12"):
        prepare(filled, "5")


def test_a_missing_checkpoint_is_told_without_loading_torch(filled: Any, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from search import export
from search.errors import UserError
from search.store.read.searches import search_by_name
from search.store.session import open_store
with open_store(sys.argv[1], create=False).read() as reader:
    wanted = export.prepare(reader, search_by_name(reader, "digits"), "5")
try:
    export.write(wanted, Path(sys.argv[2]), lambda contents: "")
except UserError as error:
    print(error)
print({"torch", "timm", "optuna", "ray"} & set(sys.modules))
"""
    target = tmp_path / "model"
    command = [sys.executable, "-c", code, str(filled.path), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, loaded = done.stdout.splitlines()
    assert said.startswith(
        "#5 of digits: its checkpoint /nowhere/digits/checkpoints/5/1/12.safetensors is missing"
    )
    assert "bring the search's artifacts back" in said
    assert loaded == "set()"
    assert not target.exists()
