"""A config and its images become a plan."""

from __future__ import annotations

import pytest

from search import config
from search.plan import make_plan
from workers.data.summary import DataSummary


def plan_of(image_size, **sections):
    values = config.from_dict({"name": "s", "data": {"source": "digits"}, **sections})
    data = DataSummary(image_size, 1, tuple("0123456789"), {"train": 100, "val": 10, "test": 10}, "digest")
    return make_plan(values, data)


@pytest.mark.parametrize(("image_size", "preset"), [(28, "tiny"), (96, "small"), (224, "base")])
def test_the_preset_that_the_image_size_chose_is_stored_with_the_search(image_size, preset):
    plan = plan_of(image_size)
    assert plan.config.space.preset == preset
    again = config.from_dict(plan.config.to_dict())
    assert again.space.preset == preset


def test_a_preset_that_was_named_is_kept():
    assert plan_of(28, space={"preset": "small"}).config.space.preset == "small"


def test_what_is_known_of_a_network_is_told_without_what_only_training_asks():
    plan = plan_of(28)
    known = plan.baseline_analysis["resnet"]
    assert {"params", "flops", "depth", "convolution_share"} <= known.keys()
    assert "unstored" not in known
