"""Searches among pretrained networks: driven with made-up answers, and one real and tiny."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
from safetensors import safe_open
from safetensors.torch import save_file

from dashboards import candidate_context, candidate_data
from search import launch
from search.candidate_json import candidate_dict
from search.cli import look_text
from search.config import from_dict
from search.states import CandidateState, SearchState
from search.store.models import Candidate, Search
from search.store.read.searches import search_by_name
from search.store.session import open_store

DEIT, MOBILE = "deit_tiny_patch16_224.fb_in1k", "mobilenetv3_small_100.lamb_in1k"


def test_a_network_without_a_closed_form_has_counted_parameters_and_no_flops(
    make_bench: Callable[..., Any],
) -> None:
    zoo = {"model": [MOBILE, "resnet18.a1_in1k"], "image_size": [64, 96]}
    bench = make_bench(space={"families": ["zoo"], "zoo": zoo}, constraints={"params": 2_000})
    bench.run(bench.driver())
    rows = [row for row in bench.rows(Candidate) if row.number > 0]
    assert len(rows) == 4, "the space holds no more"
    for row in rows:
        assert row.measured["params"] == 1000, "as the measurement counted"
        assert row.state in (CandidateState.FINISHED, CandidateState.STOPPED)
        assert row.spec["weights"] == row.point["zoo.model"]
        is_known = row.point["zoo.model"] != MOBILE
        assert ("flops" in row.measured) == ("flops" in row.analysis) == is_known


def test_a_baseline_lacks_a_quantity_without_harm(make_bench: Callable[..., Any]) -> None:
    lines: list[str] = []
    bench = make_bench(
        max_candidates=2, baselines={"mine": {"model": "resnet26"}}, objectives=["accuracy", "flops"]
    )
    driver = bench.driver()
    driver.on_event = lines.append
    bench.run(driver)
    (said,) = [line for line in lines if line.startswith("mine (baseline): finished")]
    assert "accuracy" in said
    assert "flops" not in said


@pytest.fixture
def weights_dir(tmp_path: Path) -> str:
    """Fresh weights under the names of pretrained ones: what they are worth is not what is tested here."""
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in (DEIT, MOBILE):
        values = timm.create_model(name.partition(".")[0]).state_dict()
        save_file({key: value.contiguous() for key, value in values.items()}, folder / f"{name}.safetensors")
    return str(folder)


def test_a_search_inherits_from_weights_through_stop_and_page(weights_dir: str, tmp_path: Path) -> None:
    """Two rungs, so that a second job goes on from a checkpoint."""
    db = str(tmp_path / "p.db")
    config = from_dict(
        {
            "name": "mini",
            "data": {"source": "digits", "train_limit": 60, "val_limit": 50},
            "space": {"families": ["vit"], "vit": {"patch_size": [4], "depth": [1, 2], "heads": [1, 2]}},
            "training": {
                "epochs": 2,
                "batch_size": 30,
                "weights_dir": weights_dir,
                "inherit": {"vit": DEIT},
                "frozen_epochs": 0.5,
            },
            "cost": {"device": "cpu", "max_seconds": 0.05},
            "search": {"max_candidates": 2, "rungs": [1, 2], "engine": "inline"},
            "baselines": {},
        }
    )
    assert launch.start(config, db, print).state == SearchState.FINISHED
    store = open_store(db, create=False)
    with store.read() as reader:
        search = search_by_name(reader, "mini")
        shown = candidate_dict(reader, search, "1")
        page = candidate_context.values(candidate_data.load(reader, "mini", 1))
    store.close()
    assert shown["state"] in ("finished", "stopped")
    assert shown["weights"].startswith(f"parts of {DEIT} (fb_in1k, 224 px, SHA-256 ")
    assert "of its parameters" in shown["weights"]
    assert f"began from  parts of {DEIT}" in look_text.candidate(shown)
    assert page["began"] == [("began from", shown["weights"])]
    stored = next(path for path in tmp_path.rglob("*.safetensors") if "checkpoints" in path.parts)
    with safe_open(stored, "pt") as file:
        assert file.metadata()["inherits"] == DEIT


def test_a_search_of_the_zoo_runs_from_its_weights_to_its_front(weights_dir: str, tmp_path: Path) -> None:
    db = str(tmp_path / "p.db")
    config = from_dict(
        {
            "name": "mini",
            "data": {"source": "digits", "train_limit": 60, "val_limit": 50},
            "space": {
                "families": ["zoo"],
                "zoo": {"model": [DEIT, MOBILE], "image_size": [32], "blocks": [1, 2]},
            },
            "training": {"epochs": 1, "batch_size": 30, "recipe": "finetune", "weights_dir": weights_dir},
            "cost": {"device": "cpu", "max_seconds": 0.05},
            "search": {"max_candidates": 5, "rungs": "none", "engine": "inline"},
        }
    )
    said: list[str] = []
    assert launch.start(config, db, said.append).state == SearchState.FINISHED
    store = open_store(db, create=False)
    rows = store.write(lambda s: s.query(Candidate).order_by(Candidate.number).all())
    stored = store.write(lambda s: s.query(Search).one().config)
    store.close()
    assert any(line.startswith("baselines: deit_tiny; no pretrained resnet18") for line in said)
    assert {row.name: row.state for row in rows if row.number < 0} == {"deit_tiny": "finished"}
    assert list(stored["baselines"]) == ["deit_tiny"]
    tried = {(row.spec["weights"], row.spec["args"].get("depth")) for row in rows if row.number > 0}
    assert tried == {(DEIT, 1), (DEIT, 2), (MOBILE, None)}
    for row in rows:
        assert row.state == "finished", row.reason
        assert row.spec["image_size"] == (64 if row.number < 0 else 32)
        assert row.measured["accuracy"] > 0
