from __future__ import annotations

from typing import Any

import pytest

from dashboards.candidate_context import chart, recall, values
from dashboards.candidate_data import CandidateData, load
from search.errors import UserError
from search.store.read.rows import EvaluationView


def loaded(filled: Any, number: int) -> CandidateData:
    with filled.store.read() as reader:
        return load(reader, filled.name, number)


def test_its_figures_are_those_of_the_front_with_how_each_was_taken(filled: Any) -> None:
    data = loaded(filled, 9)
    lines = {line.label: line for line in values(data)["quantities"]}
    assert {line.exact for line in lines.values()} == {repr(value) for value in data.point.values.values()}
    assert lines["Latency, median (ms)"].interval
    assert "Example CPU" in lines["Latency, median (ms)"].how
    assert lines["Validation accuracy"].remark == ""


def test_an_accuracy_of_a_shorter_training_says_so(filled: Any) -> None:
    lines = {line.label: line for line in values(loaded(filled, 10))["quantities"]}
    assert lines["Validation accuracy"].remark == "after 4 of 12 epochs"


def test_candidates_lead_on_by_number_and_baselines_among_themselves(filled: Any) -> None:
    first, last, baseline = (values(loaded(filled, number)) for number in (1, 22, -1))
    assert (first["previous"], first["next"].row.number) == (None, 2)
    assert (last["previous"].row.number, last["next"]) == (21, None)
    assert (baseline["previous"], baseline["next"]) == (None, None)


def test_dimensions_are_named_without_their_family(filled: Any) -> None:
    assert values(loaded(filled, 1))["dimensions"] == [("depth", "3"), ("embed dim", "23")]


def test_the_lowest_recall_stands_first_and_classes_without_images_last() -> None:
    figures = {"class_names": ["a", "b", "c"], "recall": [0.9, None, 0.25]}
    found = recall(EvaluationView(1, 1, "val", 12, figures, 0.0))
    assert [(one.name, one.text) for one in found] == [("c", "0.250"), ("a", "0.900"), ("b", "–")]


def test_recall_has_its_interval_and_says_what_a_class_was_taken_for_most() -> None:
    figures = {
        "class_names": ["a", "b", "c"],
        "recall": [0.9, None, 0.25],
        "recall_low": [0.8, None, 0.2],
        "recall_high": [0.95, None, 0.3],
        "confusions": [[2, 0, 70], [2, 1, 5], [0, 2, 1]],
    }
    found = recall(EvaluationView(1, 1, "val", 12, figures, 0.0))
    assert [(one.name, one.interval) for one in found] == [
        ("c", "0.200–0.300"),
        ("a", "0.800–0.950"),
        ("b", ""),
    ]
    assert [one.taken_for for one in found] == [
        (("a", 70), ("b", 5)),
        (("c", 1),),
        (),
    ]


def test_how_it_was_trained_is_told_with_what_a_probe_compared(filled: Any) -> None:
    found = values(loaded(filled, 2))
    speed = "1.34x the speed of fp32, contiguous, 1 thread"
    assert found["execution"].words == f"bf16, channels-last, 1 thread ({speed}; probed on #2)"
    assert dict(found["trials"]) == {
        "fp32, contiguous, 1 thread": "4.02 ms a step",
        "bf16, channels-last, 1 thread": "3 ms a step",
        "bf16, contiguous, 1 thread": "its loss is nan",
    }
    of_other_family = values(loaded(filled, 1))
    assert (of_other_family["execution"], of_other_family["trials"]) == (None, [])


def test_a_candidate_that_was_never_trained_has_no_curve(filled: Any) -> None:
    rejected = loaded(filled, 15)
    assert chart(rejected)["looks"]["light"]["curves"]["data"] == []
    assert values(rejected)["recall"] == []
    assert len(chart(loaded(filled, 1))["looks"]["dark"]["curves"]["data"]) == 5


def test_every_condition_of_a_measurement_is_told(filled: Any) -> None:
    table = values(loaded(filled, 3))["measurements"]
    told = dict(table.lines)
    assert len(table.times) == 1
    assert told["Device"] == ("Example CPU",)
    assert told["Protocol"] == ("eager-1",)
    assert told["Remarks"] == ("contended",)
    assert told["Latency, 99th percentile (ms)"] == ("–",)
    assert told["Calls"][0].endswith(", ended by relative error")


def test_an_unknown_number_names_those_that_there_are(filled: Any) -> None:
    with pytest.raises(UserError, match="there are 1 to 22"):
        loaded(filled, 99)
