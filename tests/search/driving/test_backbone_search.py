"""A real and tiny search among cut networks of timm, one of which has no closed form."""

from __future__ import annotations

from pathlib import Path

from search import launch
from search.config import from_dict
from search.states import SearchState
from search.store.models import Candidate
from search.store.session import open_store
from spaces import models
from spaces.spec import ArchSpec

SPACE = {
    "families": ["backbone"],
    "image_size": 28,
    "backbone": {
        "backbone": ["mobilenetv3_small_050"],
        "stage": [2, 3],
        "depth": [1],
        "heads": [1],
        "mlp_ratio": [1],
    },
}
VALUES = {
    "name": "cut",
    "data": {"source": "digits", "train_limit": 100, "val_limit": 50},
    "space": SPACE,
    "objectives": ["accuracy", "flops"],
    "constraints": {"flops": 1e7},
    "training": {"epochs": 1, "batch_size": 50},
    "cost": {"device": "cpu", "max_seconds": 0.05},
    "search": {"max_candidates": 1, "engine": "inline"},
    "baselines": {},
}


def test_it_ends_is_resumed_and_knows_what_every_candidate_costs(tmp_path: Path) -> None:
    db, lines = str(tmp_path / "p.db"), list[str]()
    assert launch.start(from_dict(VALUES), db, lines.append).state == SearchState.FINISHED
    more = ["search.max_candidates=2"]
    assert launch.resume("cut", more, db, lines.append).state == SearchState.FINISHED
    store = open_store(db, create=False)
    rows = store.write(lambda s: [(row.spec, row.analysis) for row in s.query(Candidate)])
    store.close()
    assert len(rows) == 2
    for stored, known in rows:
        spec = ArchSpec.from_dict(stored)
        assert spec.args["backbone"] == "mobilenetv3_small_050"
        assert known["params"] == models.count(spec)
        assert 0 < known["flops"] < 1e7
