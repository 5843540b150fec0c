from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workers.elsewhere import PROTOCOL, script
from workers.elsewhere.results import ResultsError, read


@pytest.fixture
def changed(measured: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], object]], Path]:
    """Writes the results anew after a change, with digests that fit, as somebody would who knows how."""

    def make(change: Callable[[dict[str, Any]], object]) -> Path:
        content = json.loads(measured.read_text())
        change(content)
        content["manifest"]["sha256"] = script.content_digest(content["manifest"])
        content["sha256"] = script.content_digest(content)
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(content))
        return path

    return make


def test_results_come_back_as_measurements_of_that_device(measured: Path) -> None:
    results = read(measured)
    assert results.device["label"] == "edge"
    first, last = results.found[0], results.found[-1]
    assert (first.name, first.search, first.candidate) == ("small", None, None)
    assert (last.search, last.candidate, last.spec.args["depth"]) == ("flowers", 3, 4)
    figures = last.measurement
    assert (figures.protocol, figures.runtime, figures.precision) == (PROTOCOL, "onnxruntime", "fp32")
    assert (figures.device_id, figures.batch_size) == (results.device["id"], 2)
    assert figures.conditions["label"] == "edge"


def test_an_edited_file_is_refused_by_name(measured: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    text = measured.read_text()
    for edited in (text.replace('"threads": 1', '"threads": 4', 1), text.replace('"edge"', '"lab"')):
        path.write_text(edited)
        with pytest.raises(ResultsError, match=f"{path}: has changed since it was written"):
            read(path)
    path.write_text(text[:-40])
    with pytest.raises(ResultsError, match="is no JSON"):
        read(path)
    path.write_text("[]")
    with pytest.raises(ResultsError, match="holds no results"):
        read(path)
    with pytest.raises(ResultsError, match="cannot be read"):
        read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda c: c.update(protocol="elsewhere-0"), "protocol: 'elsewhere-0'"),
        (lambda c: c["results"][0].update(latency_ms=-1.0), "latency_ms: -1.0 is no figure"),
        (lambda c: c["results"][0].update(throughput=True), "throughput: True is no figure"),
        (lambda c: c["results"][0].update(latency_ms_low=1e6), "are in no order"),
        (lambda c: c["results"][0].update(num_samples=10**9), "do not fit into"),
        (lambda c: c["results"][0].update(throughput=1e-3), "does not fit the latency"),
        (lambda c: c["results"][0].update(time=1e12), "lies in no time"),
        (lambda c: c["results"][0].update(batch_size=64), "manifest's conditions"),
        (lambda c: c["results"][0].pop("seconds"), "is not what the script writes"),
        (lambda c: c["device"].update(id="cpu x\n"), "is no device's id"),
        (lambda c: c["manifest"]["models"][0]["spec"].update(model="resnet18"), "digest: is not that of its"),
    ],
)
def test_figures_that_the_protocol_cannot_give_are_refused(
    changed: Callable[..., Path], change: Callable[[dict[str, Any]], object], said: str
) -> None:
    with pytest.raises(ResultsError) as error:
        read(changed(change))
    assert "changed.json" in str(error.value)
    assert said in str(error.value)
