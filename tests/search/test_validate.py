from __future__ import annotations

import time

import pytest

from search import config, validate
from search.errors import UsageError
from workers import weights
from workers.runtimes import offered

DIGITS = {"name": "hunt", "data": {"source": "digits"}}


def loaded(**sections):
    return config.from_dict(DIGITS | sections)


def test_a_checked_config_knows_its_data_space_rungs_and_deadline():
    now = time.time()
    checked = validate.check(loaded(search={"deadline": "8h"}, training={"epochs": 9}), now)
    assert checked.deadline == now + 8 * 3600
    assert checked.plan.rungs == (1, 3, 9)
    assert checked.plan.data.image_size == 8
    assert checked.plan.space.size() > 100
    assert list(checked.plan.baselines) == ["resnet"]


def test_a_stored_config_whose_deadline_has_passed_can_still_be_read():
    with pytest.raises(UsageError, match=r"search\.deadline: .* is past"):
        validate.check(loaded(search={"deadline": "2001-01-01"}), time.time())


def test_a_dry_build_builds_different_candidates_and_repeats_them_for_a_seed():
    plan = validate.check(loaded(), time.time()).plan
    built = validate.dry_build(plan, 4)
    assert len({spec.digest for spec in built.specs}) == len(built.specs) == len(built.params)
    assert min(built.params) > 0
    assert validate.dry_build(plan, 4) == built


def test_a_dry_build_finds_as_many_different_ones_as_it_is_asked_for_where_there_are_as_many():
    few = {"families": ["vit"], "vit": {"patch_size": [4], "depth": [1], "heads": [1, 2], "head_width": [16]}}
    plan = validate.check(loaded(space=few), time.time()).plan
    assert plan.space.size() == 28
    assert len(validate.dry_build(plan, 20).specs) == 20
    assert len(validate.dry_build(plan, 40).specs) == 28


def test_a_new_search_decodes_as_many_images_as_a_step_takes():
    checked = validate.check_new(loaded(training={"batch_size": 32}), time.time())
    assert checked.batch is not None
    assert checked.batch.num_images == 32
    everything = validate.check_new(loaded(data={"source": "digits", "train_limit": 20}), time.time())
    assert everything.batch is not None
    assert everything.batch.num_images == 20


def test_what_is_checked_of_a_stored_search_asks_no_network_and_decides_nothing(monkeypatch):
    monkeypatch.setattr(weights, "reachable", lambda name, folder: pytest.fail(name))
    checked = validate.check(loaded(space={"families": ["zoo"]}), time.time())
    assert checked.plan.config.baselines is None
    assert (checked.batch, checked.advice, checked.missing) == (None, None, None)


def test_a_space_smaller_than_the_dry_build_is_built_as_far_as_it_goes():
    tiny = {"families": ["vit"], "vit": {"patch_size": [4], "depth": [1]}}
    plan = validate.check(loaded(space=tiny), time.time()).plan
    assert 1 <= len(validate.dry_build(plan, 3).specs) <= 3


@pytest.mark.parametrize(
    "spaces, key",
    [
        ({"vit": {"patch_size": [3]}}, "space.vit.patch_size: "),
        ({"families": ["swin"], "swin": {"windoww": [2]}}, "space.swin: "),
        ({"families": ["vit"], "vit": {"depth": {"low": 5, "high": 2}}}, "space.vit.depth: "),
    ],
)
def test_what_is_wrong_with_a_space_names_the_key_of_the_config(spaces, key):
    with pytest.raises(UsageError) as caught:
        validate.check(loaded(space=spaces), time.time())
    assert str(caught.value).startswith(f"stored config: {key}")


def test_baselines_have_to_build():
    wrong = {"mine": {"model": "resnet18", "args": {"no_such_argument": 1}}}
    with pytest.raises(UsageError, match=r"baselines\.mine: resnet18 with .* does not build"):
        validate.check(loaded(baselines=wrong), time.time())


def test_a_baseline_may_repeat_what_follows_from_the_images():
    args = {"in_chans": 1, "num_classes": 10}
    checked = validate.check_new(loaded(baselines={"mine": {"model": "resnet18", "args": args}}), time.time())
    assert checked.plan.baselines["mine"].args == args


def test_a_stored_search_with_settings_that_are_ignored_can_still_be_read(tmp_path):
    ignored = {"mine": {"model": "resnet18", "args": {"num_classes": 3}}}
    data = {"source": "digits", "path": str(tmp_path)}
    plan = validate.check(loaded(data=data, baselines=ignored), time.time()).plan
    assert plan.baselines["mine"].args["num_classes"] == 10


def test_a_runtime_whose_packages_are_missing_names_the_extra(monkeypatch):
    monkeypatch.setattr(offered.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"cost.runtime: .*pip install 'paretovit\[export\]'"):
        validate.check_new(loaded(cost={"runtime": "onnxruntime"}), time.time())


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (
            {"precision": "int8"},
            "torch offers fp32, bf16, fp16 on a CPU, not int8; int8 is offered by",
        ),
        (
            {"runtime": "cuda-graph"},
            "cost.runtime: cuda-graph does not measure on a CPU; there are torch",
        ),
        (
            {"runtime": "onnxruntime", "precision": "bf16"},
            "onnxruntime offers fp32, int8 on a CPU",
        ),
    ],
)
def test_what_a_runtime_does_not_offer_is_refused_naming_what_is_offered(cost, message):
    with pytest.raises(UsageError) as caught:
        validate.check(loaded(cost={"device": "cpu", **cost}), time.time())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"objectives": ["accuracy", "latency_ms@tensorrt"]},
            "objectives: tensorrt does not measure on a CPU",
        ),
        (
            {"constraints": {"latency_ms@torch:int8": 5}},
            "constraints.latency_ms@torch:int8: torch offers fp32, bf16",
        ),
        (
            {"cost": {"device": "cpu", "precision": "bf16"}, "constraints": {"model_mb@onnxruntime": 5}},
            "constraints.model_mb@onnxruntime: onnxruntime offers fp32, int8 on a CPU, not bf16",
        ),
    ],
)
def test_what_objectives_and_constraints_name_has_to_be_offered_too(asked, message):
    with pytest.raises(UsageError) as caught:
        validate.check(loaded(**{"cost": {"device": "cpu"}, **asked}), time.time())
    assert message in str(caught.value)
