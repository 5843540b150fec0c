"""`paretovit measure NAME CANDIDATE`: networks of a search under its conditions, and figures that it has of them."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from typing import Any

import pytest

from search.cli.main import main
from search.states import CandidateState
from search.store.session import open_store
from search.store.write import candidates, results, searches
from spaces.spec import ArchSpec
from workers.measure import protocol
from workers.settings import CostSettings

ARGS = {
    "img_size": 8,
    "patch_size": 2,
    "embed_dim": 16,
    "depth": 1,
    "num_heads": 2,
    "in_chans": 1,
    "num_classes": 10,
}
SPEC = ArchSpec("vit_tiny_patch16_224", ARGS, 8)
HOUR = 3600


@pytest.fixture
def searched(tmp_path, monkeypatch) -> Any:
    """A search with one candidate that was measured an hour ago; tells how often anything is measured now."""
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PARETOVIT_DB", str(tmp_path / "searches.db"))
    shorter = functools.partialmethod(CostSettings.__init__, max_seconds=0.05)
    monkeypatch.setattr(CostSettings, "__init__", shorter)
    from search.config import from_dict

    config = from_dict({"name": "one", "data": {"source": "digits"}, "cost": {"device": "cpu"}}).to_dict()
    del config["cost"]["max_seconds"]
    found = dataclasses.replace(protocol.measure(SPEC, CostSettings(device="cpu")), flags=())
    store = open_store(str(tmp_path / "searches.db"), create=True)

    def work(session: Any) -> None:
        search = searches.create(session, "one", config, {"digest": "0"}, str(tmp_path), None)
        row = candidates.add(session, search, 1, "vit", SPEC, point={}, analysis={}, trial=0)
        candidates.set_state(row, CandidateState.MEASURED)
        results.add_measurement(session, row, found, None).time = time.time() - HOUR

    store.write(work)
    store.close()
    measured = []
    measure = protocol.measure

    def counted(spec: ArchSpec, cost: CostSettings, *rest: Any) -> Any:
        measured.append(cost)
        return measure(spec, cost, *rest)

    monkeypatch.setattr(protocol, "measure", counted)
    return found, measured


def shown(capsys: Any, *more: str) -> dict[str, Any]:
    assert main(["measure", "one", "1", "--json", *more]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    return result


def test_a_clean_figure_of_the_search_is_shown_with_its_age(searched, capsys):
    found, measured = searched
    result = shown(capsys)
    assert result["latency_ms"]["median"] == found.latency_ms
    assert result["age_seconds"] == pytest.approx(HOUR, abs=60)
    assert measured == []
    assert main(["measure", "one", "1"]) == 0
    assert "measured 1 h 0 min ago" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [["--again"], ["--batch", "2"], ["--precision", "bf16"], ["--cache", "cold"], ["--threads", "2"]],
    ids=lambda more: more[0],
)
def test_again_and_other_conditions_measure(searched, capsys, more):
    assert shown(capsys, *more)["age_seconds"] is None
    assert len(searched[1]) == 1
