from __future__ import annotations

import pytest

from dashboards.figures import palette, training
from search.store.read.rows import EpochView


def epochs(count: int) -> list[EpochView]:
    return [
        EpochView(1, n, 2.0 / n, 2.2 / n, 1 - 1 / n, 0.9 - 1 / n, 1.0, 1e-3, 0.5, 0.0, 0.0)
        for n in range(count, 0, -1)
    ]


def test_epochs_are_in_order_and_only_rungs_that_decided_something_are_marked() -> None:
    info = training.training_info(epochs(5), (2, 4, 12), 12)
    assert [epoch.epoch for epoch in info.epochs] == [1, 2, 3, 4, 5]
    assert info.rungs == (2, 4)
    assert training.training_info(epochs(12), (4, 12), 12).rungs == (4,)


@pytest.mark.parametrize("theme", palette.THEMES.values(), ids=palette.THEMES)
def test_accuracy_stands_above_the_losses_with_its_interval(theme: palette.Theme) -> None:
    figure = training.draw(training.training_info(epochs(3), (2,), 3), theme)
    traces = {trace["name"]: trace for trace in figure["data"]}
    assert traces["validation accuracy"]["y"] == [0.0, 0.5, 1 - 1 / 3]
    assert traces["95% interval"]["fill"] == "tonexty"
    assert {name for name, trace in traces.items() if trace.get("yaxis") == "y2"} == {
        "training loss",
        "validation loss",
    }


def test_nothing_is_drawn_before_the_first_epoch() -> None:
    assert training.draw(training.training_info([], (2,), 12), palette.THEMES["light"])["data"] == []


def test_the_axis_is_as_long_as_a_full_training() -> None:
    figure = training.draw(training.training_info(epochs(3), (), 12), palette.THEMES["light"])
    assert figure["layout"]["xaxis"]["range"] == [0.5, 12.5]
