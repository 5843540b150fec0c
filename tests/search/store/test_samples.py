"""The timings behind a measurement, from the worker's outcome to the database and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from search.store.models import MeasurementRow
from search.store.read import results as reads
from search.store.session import open_store
from search.store.write import candidates, results, searches
from spaces.spec import ArchSpec
from workers.job import Measurement
from workers.measure import samples

TAKEN = tuple(1.0 + place / 1000 for place in range(300))


def measurement(text: str) -> Measurement:
    figures: dict[str, Any] = dict.fromkeys(
        ["latency_ms", "latency_ms_low", "latency_ms_high", "latency_ms_p95", "latency_ms_spread"], 1.0
    )
    figures |= dict.fromkeys(["latency_relative_error", "throughput", "peak_memory_mb", "model_mb"], 1.0)
    figures |= dict.fromkeys(["build_seconds", "first_call_ms", "seconds"], 1.0)
    conditions = {"protocol": "p", "device_id": "d", "device_name": "d", "threads": 1, "runtime": "torch"}
    conditions |= {
        "precision": "fp32",
        "batch_size": 1,
        "num_samples": len(TAKEN),
        "stopped_by": "max_seconds",
    }
    return Measurement(**conditions, **figures, latency_ms_p99=None, throughput_batch_size=1, samples=text)


def test_timings_are_kept_beside_the_figures_and_a_row_taken_over_has_those_of_its_source(
    tmp_path: Path,
) -> None:
    store = open_store(str(tmp_path / "searches.db"), create=True)

    def work(session: Any) -> list[int]:
        search = searches.create(session, "one", {}, {}, str(tmp_path), None)
        row = candidates.add(session, search, 1, "vit", ArchSpec("m"), point={}, analysis={}, trial=0)
        first = results.add_measurement(session, row, measurement(samples.to_text(samples.pack(TAKEN))), None)
        session.flush()
        again = results.add_measurement(session, row, results.as_measurement(first), None, first)
        without = results.add_measurement(session, row, measurement(""), None)
        session.flush()
        return [first.id, again.id, without.id]

    first, again, without = store.write(work)
    with store.read() as reader:
        assert reads.samples(reader, first) == pytest.approx(TAKEN, rel=1e-6)
        assert reads.samples(reader, again) == reads.samples(reader, first)
        assert reads.samples(reader, without) == ()
    rows = store.write(lambda s: [(row.figures["samples"], row.samples) for row in s.query(MeasurementRow)])
    assert [figures for figures, _ in rows] == ["", "", ""], (
        "not twice, and not in what is read for every page"
    )
    assert [packed is None for _, packed in rows] == [False, True, True]
    store.close()
