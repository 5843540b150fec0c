"""A search whose checkpoints are damaged while it runs, with real trainings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search.store.models import Candidate, Event
from workers.job import Decision, Job, Kind, Outcome
from workers.perform import perform

RUNGS = [1, 2, 3]


def test_a_byte_that_changed_costs_the_epochs_since_the_checkpoint_before_and_changes_no_result(
    make_bench: Callable[..., Any],
    answer: Callable[[Job, str], Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))

    def search(db: str, damage: bool) -> Any:
        bench = make_bench(
            db,
            rungs=RUNGS,
            max_candidates=3,
            training={"epochs": 3},
            baselines={},
            space={"families": ["vit"], "vit": {"patch_size": [4], "depth": [1], "heads": [1]}},
        )
        trained: list[tuple[int, int]] = []

        def work(job: Job) -> Outcome:
            if job.kind != Kind.TRAIN:
                return answer(job, bench.digest)
            trained.append((job.candidate, job.first_epoch))
            if damage and job.first_epoch == RUNGS[-1] and job.checkpoint is not None:
                path = Path(job.artifacts, job.checkpoint.path)
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(data)
            return perform(job, lambda _: Decision.CONTINUE)

        told: list[str] = []
        driver = bench.driver()
        driver.on_event = told.append
        bench.run(driver, work)
        return bench, trained, told

    (sound, smooth, _), (hurt, damaged, told) = search("sound.db", False), search("hurt.db", True)
    again = [(number, 2) for number, first in smooth if first == RUNGS[-1]]
    assert again
    assert sorted(damaged) == sorted(smooth + again)
    assert results_of(hurt) == results_of(sound)
    events = [event.text for event in hurt.rows(Event) if event.kind == "retry"]
    assert len(events) == len(again)
    assert all(text.startswith("trains again from epoch 2: ") for text in events)
    assert all("has changed since it was written" in text for text in events)
    said = [text for text in told if "trains again from epoch 2: " in text]
    assert said == [f"#{number} vit: {text}" for (number, _), text in zip(again, events, strict=True)]


def results_of(bench: Any) -> list[tuple[Any, ...]]:
    return [(c.number, c.digest, c.state, c.rung, c.measured.get("accuracy")) for c in bench.rows(Candidate)]
