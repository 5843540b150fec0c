from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import spaces.models
from search import config, teaching
from search.errors import UsageError
from search.plan import Plan, make_plan
from search.validate import check, check_new
from spaces.spec import ArchSpec
from workers.data.summary import summarise
from workers.job import Decision, Job, Kind
from workers.settings import DataSettings, JobSettings, RecipeSettings
from workers.train import train

DATA = {"source": "digits", "train_limit": 200}


def configured(distillation: dict[str, Any], **more: Any) -> config.SearchConfig:
    training = {"epochs": 9, "distillation": distillation, **more.pop("training", {})}
    return config.from_dict({"name": "a", "data": DATA, "training": training, **more})


def planned(distillation: dict[str, Any], **more: Any) -> Plan:
    values = configured(distillation, **more)
    return teaching.with_teacher(make_plan(values, summarise(values.data)))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., Path]:
    """Trains a tiny network for an epoch and names its checkpoint."""

    def make(**data: Any) -> Path:
        spec = ArchSpec(
            "paretovit_resnet",
            {
                "channels": [4, 4, 4, 4],
                "layers": [1] * 4,
                "stem_stride": 1,
                "in_chans": 1,
                "num_classes": 10,
            },
            8,
        )
        settings = JobSettings(DataSettings(**DATA | data), RecipeSettings(epochs=1))
        job = Job(1, 1, 1, Kind.TRAIN, "other", 4, spec, settings, str(tmp_path / "other"), 1, 1)
        made = train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)
        return Path(job.artifacts, made.checkpoint.path)

    return make


def test_a_network_to_be_trained_is_built_for_the_images_and_trained_as_long_as_candidates() -> None:
    found = planned({"teacher": {"train": "resnet18"}}).teacher
    assert found is not None
    assert (found.name, found.made, found.epochs) == ("resnet18", "trained here", 9)
    assert (found.spec.model, found.spec.weights, found.spec.image_size) == ("resnet18", None, 64)
    assert dict(found.spec.args) == {"in_chans": 1, "num_classes": 10}


def test_resnet_is_the_scaled_baseline() -> None:
    plan = planned({"teacher": {"train": "resnet", "epochs": 30}})
    assert plan.teacher is not None
    assert plan.teacher.spec == plan.baselines["resnet"]
    assert plan.teacher.epochs == 30


def test_weights_are_fine_tuned_first() -> None:
    found = planned({"teacher": {"weights": "resnet18.a1_in1k"}}).teacher
    assert found is not None
    assert found.name == found.spec.weights == "resnet18.a1_in1k"
    assert found.made == "fine-tuned here"


def test_without_distillation_there_is_no_teacher_and_nobody_learns_from_it() -> None:
    values = config.from_dict({"name": "a", "data": DATA})
    plan = teaching.with_teacher(make_plan(values, summarise(values.data)))
    assert plan.teacher is None
    assert not plan.distils(plan.baselines["resnet"])


def test_a_stored_config_of_before_distillation_still_loads_and_means_labels_alone() -> None:
    stored = config.from_dict({"name": "a", "data": DATA}).to_dict()
    del stored["training"]["distillation"]
    assert config.from_dict(stored).training.distillation is None


def test_a_config_comes_back_from_the_database_as_it_was() -> None:
    values = configured({"teacher": {"train": "resnet"}, "kind": "soft", "temperature": 2, "alpha": 0.3})
    assert config.from_dict(values.to_dict()) == values


def test_settings_may_be_overridden_one_by_one() -> None:
    values = configured({"teacher": {"train": "resnet"}})
    found = config.from_dict(values.to_dict(), ["training.distillation.teacher.epochs=4"])
    assert found.training.distillation is not None
    assert found.training.distillation.teacher.epochs == 4


@pytest.mark.parametrize(
    ("distillation", "more", "message"),
    [
        ({"teacher": {}}, {}, "training.distillation.teacher: needs one of weights, checkpoint and train"),
        ({"kind": "soft"}, {}, "training.distillation.teacher: is missing"),
        (
            {"teacher": {"train": "resnet"}, "alhpa": 1},
            {},
            "training.distillation.alhpa: unknown key; nearest: alpha",
        ),
        (
            {"teacher": {"train": "resnet"}, "kind": "sft"},
            {},
            "training.distillation.kind: 'sft' is none of soft, hard",
        ),
        (
            {"teacher": {"train": "resnet"}, "kind": "hard", "temperature": 2},
            {},
            "training.distillation.temperature: is of kind soft alone, not of hard; remove it",
        ),
        (
            {"teacher": {"train": "resnet99"}},
            {},
            "training.distillation.teacher.train: 'resnet99': 'resnet99' is not an entry point of timm",
        ),
        (
            {"teacher": {"train": "resnet18.a1_in1k"}},
            {},
            "training.distillation.teacher.train: 'resnet18.a1_in1k' names weights; give it as teacher.weights, or "
            "train: resnet18",
        ),
        (
            {"teacher": {"weights": "resnet18.mine"}},
            {},
            "training.distillation.teacher.weights: 'resnet18.mine' names no pretrained weights; timm has resnet18",
        ),
        (
            {"teacher": {"train": "resnet"}, "kind": "token"},
            {"space": {"families": ["vit", "deit", "hybrid"]}},
            "training.distillation.kind: token needs a distillation token, and vit, hybrid have none; use soft or hard",
        ),
        (
            {"teacher": {"checkpoint": "/nowhere/a.safetensors"}},
            {},
            "training.distillation.teacher.checkpoint: /nowhere/a.safetensors: no such file",
        ),
    ],
)
def test_mistakes_are_refused_by_key_value_and_remedy(
    distillation: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        planned(distillation, **more)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_candidate_of_family_deit_learns_by_its_token() -> None:
    plan = planned({"teacher": {"train": "resnet"}, "kind": "token"}, space={"families": ["deit"]})
    import random

    assert all(plan.distils(plan.space.spec(plan.space.sample(random.Random(seed)))) for seed in range(20))
    assert not plan.distils(plan.baselines["resnet"])


def test_validate_refuses_weights_that_are_not_to_be_had() -> None:
    with pytest.raises(UsageError, match=r"teacher\.weights: the weights resnet18\.a1_in1k are not on this"):
        check_new(configured({"teacher": {"weights": "resnet18.a1_in1k"}}, baselines={}), 0.0)


def test_validate_refuses_a_file_of_weights_that_does_not_fit(tmp_path: Path) -> None:
    save_file({"nothing": torch.zeros(2)}, tmp_path / "resnet18.mine.safetensors")
    values = configured(
        {"teacher": {"weights": "resnet18.mine"}}, training={"weights_dir": str(tmp_path)}, baselines={}
    )
    with pytest.raises(UsageError, match=r"teacher\.weights: .*put the right file there"):
        check_new(values, 0.0)


def test_validate_takes_a_file_of_weights_that_fits(tmp_path: Path) -> None:
    spec = ArchSpec("resnet18", {"in_chans": 3, "num_classes": 1000}, 64)
    save_file(spaces.models.build(spec).state_dict(), tmp_path / "resnet18.mine.safetensors")
    values = configured(
        {"teacher": {"weights": "resnet18.mine"}}, training={"weights_dir": str(tmp_path)}, baselines={}
    )
    found = check_new(values, 0.0).plan.teacher
    assert found is not None
    assert found.spec.weights == "resnet18.mine"


def test_a_checkpoint_of_the_same_images_is_taken_and_one_of_others_is_not(
    checkpoint: Callable[..., Path],
) -> None:
    found = planned({"teacher": {"checkpoint": str(checkpoint())}}).teacher
    assert found is not None
    assert (found.made, found.epochs, found.spec.model) == ("taken over", 0, "paretovit_resnet")
    with pytest.raises(UsageError, match=r"checkpoint: .*was trained on other images or splits"):
        planned({"teacher": {"checkpoint": str(checkpoint(seed=1))}})


def test_a_search_that_has_begun_goes_on_without_the_file_that_it_has_a_copy_of(
    checkpoint: Callable[..., Path],
) -> None:
    path = checkpoint()
    values = configured({"teacher": {"checkpoint": str(path)}}, baselines={})
    path.unlink()
    assert check(values, 0.0).plan.teacher is None
    with pytest.raises(UsageError, match="no such file"):
        check_new(values, 0.0)


def test_validate_refuses_stochastic_depth_for_a_teacher_that_has_none() -> None:
    with pytest.raises(UsageError, match=r"training\.stochastic_depth: vgg11 has none"):
        check_new(
            configured({"teacher": {"train": "vgg11"}}, training={"stochastic_depth": 0.1}, baselines={}), 0.0
        )


def test_a_relative_checkpoint_starts_at_the_folder_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "search.yaml"
    file.write_text(
        "name: a\ndata: {source: digits}\n"
        "training: {distillation: {teacher: {checkpoint: other/a.safetensors}}}\n"
    )
    found = config.load(file).training.distillation
    assert found is not None
    assert found.teacher.checkpoint == str(tmp_path / "other" / "a.safetensors")
