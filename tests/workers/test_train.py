from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import spaces.models
from spaces.spec import ArchSpec
from workers import checkpoint
from workers import train as train_module
from workers.data.batches import resident
from workers.errors import CandidateError, CheckpointError
from workers.evaluate import evaluate_checkpoint
from workers.job import Decision, EpochReport, Job
from workers.settings import DataSettings, JobSettings, RecipeSettings
from workers.train import TrainResult, train

CPU = torch.device("cpu")
MakeJob = Callable[..., Job]
pytestmark = pytest.mark.usefixtures("one_thread")

RESNET = ArchSpec(
    "paretovit_resnet",
    {"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1], "stem_stride": 1, "in_chans": 1, "num_classes": 10},
    8,
)
SWIN = ArchSpec(
    "swin_tiny_patch4_window7_224",
    {
        "img_size": 8,
        "patch_size": 1,
        "window_size": 4,
        "embed_dim": 8,
        "depths": [1, 1],
        "num_heads": [1, 2],
        "in_chans": 1,
        "num_classes": 10,
    },
    8,
)


def go_on(_report: EpochReport) -> Decision:
    return Decision.CONTINUE


def run(job: Job, emit: Callable[[EpochReport], Decision] = go_on) -> TrainResult:
    return train(job, CPU, emit, lambda: 0.0)


def stored(job: Job, result: TrainResult) -> dict[str, Tensor]:
    return load_file(Path(job.artifacts) / result.checkpoint.path)


def sized(spec: ArchSpec, side: int) -> ArchSpec:
    """The same network for images of another size."""
    return dataclasses.replace(spec, args={**spec.args, "img_size": side}, image_size=side)


@pytest.mark.parametrize("spec", [None, RESNET, SWIN], ids=["vit", "resnet", "swin"])
def test_stopping_and_resuming_ends_in_the_same_bits(train_job: MakeJob, spec: ArchSpec | None) -> None:
    changes = {"stochastic_depth": 0.2} | ({"spec": spec} if spec else {})
    whole = train_job(1, 4, **changes)
    at_once = run(whole)
    first = run(train_job(1, 2, id=8, **changes))
    second = run(train_job(3, 4, id=9, checkpoint=first.checkpoint, **changes))
    expected, found = stored(whole, at_once), stored(whole, second)
    assert expected.keys() == found.keys()
    assert {name.split("/")[0] for name in expected} == {"model", "ema", "optimizer"}
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert at_once.evaluation == second.evaluation
    assert [report.learning_rate for report in at_once.epochs] == [
        report.learning_rate for report in (*first.epochs, *second.epochs)
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": "deit"},
        {"recipe": "deit", "batch_size": 33},
        {"optimizer": "lion", "schedule": "wsd"},
        {"optimizer": "muon", "dropout": 0.2},
        {"accumulation": 3, "mixup": 0.2},
        {
            "recipe": "custom",
            "optimizer": "adamw",
            "schedule": "cosine",
            "learning_rate": 1e-3,
            "rand_augment_ops": 1,
            "rand_augment_magnitude": 5.0,
            "erasing": 0.5,
        },
    ],
    ids=["deit", "odd batches", "lion", "muon", "accumulation", "custom"],
)
def test_every_recipe_stops_and_resumes_in_the_same_bits(train_job: MakeJob, changes: dict) -> None:
    whole = train_job(1, 3, **changes)
    at_once = run(whole)
    first = run(train_job(1, 1, id=8, **changes))
    random.seed(1)
    np.random.seed(1)
    second = run(train_job(2, 3, id=9, checkpoint=first.checkpoint, **changes))
    expected, found = stored(whole, at_once), stored(whole, second)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert at_once.evaluation == second.evaluation


def test_a_step_of_two_batches_is_the_step_of_one_twice_as_large(train_job: MakeJob) -> None:
    still = {"stochastic_depth": 0.0}
    one = train_job(1, 2, batch_size=100, **still)
    two = train_job(1, 2, id=8, batch_size=50, accumulation=2, **still)
    expected, found = run(one), run(two)
    assert found.epochs[1].train_loss == pytest.approx(expected.epochs[1].train_loss, rel=1e-5)
    assert found.epochs[1].learning_rate == expected.epochs[1].learning_rate
    weights, others = stored(one, expected), stored(two, found)
    assert all(
        torch.allclose(weights[name], others[name], atol=1e-4) for name in weights if name[:5] == "model"
    )


def test_a_checkpoint_of_another_recipe_is_not_taken_up(train_job: MakeJob) -> None:
    first = run(train_job(1, 1))
    with pytest.raises(CheckpointError, match="recipe is"):
        run(train_job(2, 2, id=8, recipe="deit", checkpoint=first.checkpoint))
    with pytest.raises(CheckpointError, match="recipe is"):
        run(train_job(2, 2, id=8, mixup=0.1, checkpoint=first.checkpoint))


@pytest.mark.parametrize("image_size", [8, 12])
def test_stopping_and_resuming_a_fine_tuning_ends_in_the_same_bits(
    fine_tune_job: MakeJob, image_size: int
) -> None:
    """The second job finds no weights any more: its checkpoint holds all of them."""
    spec = sized(fine_tune_job(1, 1).spec, image_size)
    changes = {"stochastic_depth": 0.2, "spec": spec}
    whole = fine_tune_job(1, 4, **changes)
    at_once = run(whole)
    first = run(fine_tune_job(1, 2, id=8, **changes))
    Path(str(whole.settings.recipe.weights_dir), "other.safetensors").unlink()
    second = run(fine_tune_job(3, 4, id=9, checkpoint=first.checkpoint, **changes))
    expected, found = stored(whole, at_once), stored(whole, second)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert at_once.evaluation == second.evaluation
    assert at_once.notes == first.notes == second.notes


def test_what_training_began_from_is_noted_as_plain_values(
    fine_tune_job: MakeJob, train_job: MakeJob
) -> None:
    result = run(fine_tune_job(1, 1))
    noted = result.notes["weights"]
    assert json.loads(json.dumps(noted)) == noted
    assert noted["name"] == "other"
    assert noted["file"].endswith("weights/other.safetensors")
    assert (noted["fresh"], noted["resampled"]) == (["head.weight", "head.bias"], ["pos_embed"])
    assert noted["blocks"] == {"blocks": [2, 3]}
    assert "weights" not in run(train_job(1, 1)).notes


def test_fine_tuning_begins_from_the_weights_and_plain_training_does_not(
    fine_tune_job: MakeJob, train_job: MakeJob
) -> None:
    job = fine_tune_job(1, 1, backbone_rate=0.0, ema_decay=0.0)
    weights = load_file(Path(str(job.settings.recipe.weights_dir), "other.safetensors"))
    kept, name = stored(job, run(job)), "blocks.1.attn.qkv.weight"
    assert torch.equal(kept[f"model/{name}"], weights[name])
    plain = train_job(1, 1)
    assert not torch.equal(stored(plain, run(plain))[f"model/{name}"], weights[name])


def test_the_plain_recipe_needs_no_weights(fine_tune_job: MakeJob, train_job: MakeJob) -> None:
    job = fine_tune_job(1, 1, recipe="plain", weights_dir="/nowhere")
    plain = train_job(1, 1, id=8)
    result = run(job)
    assert "weights" not in result.notes
    assert result.evaluation == run(plain).evaluation


def test_images_are_brought_to_the_size_that_the_network_takes(train_job: MakeJob) -> None:
    spec = sized(train_job(1, 1).spec, 12)
    seen: list[torch.Size] = []
    build = spaces.models.build

    def watched(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
        model = build(spec, stochastic_depth)
        model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1:]))
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spaces.models, "build", watched)
        result = run(train_job(1, 1, spec=spec))
    assert set(seen) == {(1, 12, 12)}
    scores, _ = evaluate_checkpoint(train_job(0, 0, spec=spec, checkpoint=result.checkpoint), CPU, "val")
    assert scores == result.evaluation


def test_candidates_and_seeds_are_trained_differently(train_job: MakeJob) -> None:
    losses = {
        run(train_job(1, 1, candidate=candidate, seed=seed)).epochs[0].train_loss
        for candidate, seed in ((1, 0), (2, 0), (1, 1), (-1, 0))
    }
    assert len(losses) == 4


def test_a_small_vit_learns_digits(train_job: MakeJob) -> None:
    job = train_job(1, 4)
    spec = dataclasses.replace(job.spec, args={**job.spec.args, "embed_dim": 32})
    settings = JobSettings(DataSettings("digits"), RecipeSettings(epochs=4, batch_size=32))
    result = run(dataclasses.replace(job, settings=settings, spec=spec))
    assert result.evaluation.accuracy > 0.6
    assert result.epochs[-1].train_loss < result.epochs[0].train_loss


def test_every_epoch_is_reported_under_the_jobs_triple(train_job: MakeJob) -> None:
    seen: list[EpochReport] = []

    def emit(report: EpochReport) -> Decision:
        seen.append(report)
        return Decision.CONTINUE

    result = run(train_job(1, 3, attempt=2, lease=5), emit)
    assert [report.epoch for report in seen] == [1, 2, 3]
    assert {(report.job, report.attempt, report.lease) for report in seen} == {(7, 2, 5)}
    assert (result.epochs, result.epoch, result.stopped) == (tuple(seen), 3, False)
    assert seen[-1].accuracy == result.evaluation.accuracy


def test_stop_ends_after_the_epoch_with_a_checkpoint(train_job: MakeJob) -> None:
    job = train_job(1, 4)
    result = run(job, lambda report: Decision.STOP if report.epoch == 2 else Decision.CONTINUE)
    assert (result.epoch, result.stopped, result.checkpoint.epoch) == (2, True, 2)
    rest = run(train_job(3, 4, id=8, checkpoint=result.checkpoint))
    assert rest.epoch == 4


def test_stop_after_the_last_epoch_is_no_stop(train_job: MakeJob) -> None:
    assert not run(train_job(1, 1), lambda report: Decision.STOP).stopped


def test_a_later_epoch_needs_a_checkpoint(train_job: MakeJob) -> None:
    with pytest.raises(CheckpointError, match="epoch 2 needs the checkpoint of epoch 1"):
        run(train_job(2, 2))


def test_pauses_are_asked_for_before_every_step_and_kept_out_of_the_seconds(train_job: MakeJob) -> None:
    calls = []

    def between_steps() -> float:
        calls.append(1)
        return 100.0

    run(train_job(1, 1))
    result = train(train_job(1, 1), CPU, go_on, between_steps)
    assert len(calls) == 1 + 4 + 2, "the listing, steps, and batches of validation"
    assert result.epochs[0].pause_seconds == 600.0
    assert result.epochs[0].seconds == 0.0


@pytest.mark.parametrize("batch_size", [2, 199])
def test_batch_normalisation_never_meets_a_single_image(train_job: MakeJob, batch_size: int) -> None:
    """199 leaves one image of 200 over; ResNet's last maps of 8 px images are single pixels."""
    job = train_job(1, 1, spec=RESNET, batch_size=batch_size, ema_decay=0.9)
    assert run(job).epoch == 1


class Exploding(nn.Module):
    """Its scores are finite for so many training batches and then not; or, with `backward`, their gradients."""

    def __init__(self, batches: int, backward: bool) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        self.left = batches
        self.backward = backward

    def forward(self, images: Tensor) -> Tensor:
        scores = self.inner(images)
        self.left -= self.training
        if self.left >= 0:
            return scores
        if not self.backward:
            return scores * float("nan")
        if self.training:
            scores.register_hook(lambda gradient: gradient * float("inf"))
        return scores


MESSAGES = {
    False: r"loss nan at step {} is not finite \(learning rate \S+, gradient norm nan\)",
    True: r"gradient norm (nan|inf) at step {} is not finite \(learning rate \S+, loss \d\S+\)",
}


@pytest.mark.parametrize("backward", MESSAGES)
@pytest.mark.parametrize("step", [1, 3, 10], ids=["at once", "in the first epoch", "in the third"])
def test_a_loss_or_gradient_that_is_not_finite_ends_the_job_at_its_step(
    train_job: MakeJob, monkeypatch: pytest.MonkeyPatch, step: int, backward: bool
) -> None:
    """Four steps an epoch."""
    made: list[Exploding] = []

    def build(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
        made.append(Exploding(step - 1, backward))
        return made[-1]

    monkeypatch.setattr(spaces.models, "build", build)
    job = train_job(1, 4)
    reported: list[int] = []

    def emit(report: EpochReport) -> Decision:
        reported.append(report.epoch)
        return Decision.CONTINUE

    with pytest.raises(CandidateError, match=MESSAGES[backward].format(step)):
        run(job, emit)
    assert made[0].left == -1, "no batch came after it"
    assert reported == list(range(1, 1 + (step - 1) // 4))
    assert not Path(job.artifacts).exists()


def test_after_a_resume_the_step_that_is_named_counts_from_the_first_epoch(
    train_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaces.models, "build", lambda spec, stochastic_depth=None: Exploding(8, False))
    half = run(train_job(1, 2))
    monkeypatch.setattr(spaces.models, "build", lambda spec, stochastic_depth=None: Exploding(1, False))
    with pytest.raises(CandidateError, match=MESSAGES[False].format(10)):
        run(train_job(3, 4, id=8, checkpoint=half.checkpoint))


def test_a_network_that_cannot_read_the_images_fails_at_once(train_job: MakeJob) -> None:
    spec = ArchSpec("resnet10t", {"in_chans": 3, "num_classes": 10}, 8)
    with pytest.raises(CandidateError, match="the images need in_chans=1, but the network has 3"):
        run(train_job(1, 1, spec=spec))


def test_a_setting_that_the_network_cannot_use_is_noted(
    train_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(spec: ArchSpec, stochastic_depth: float | None = None) -> nn.Module:
        if stochastic_depth:
            raise TypeError("unexpected keyword argument 'drop_path_rate'")
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    monkeypatch.setattr(spaces.models, "build", build)
    assert "stochastic_depth" in run(train_job(1, 1)).notes
    assert not run(train_job(1, 1, stochastic_depth=0.0)).notes


def test_a_checkpoint_brings_along_how_its_images_were_normalised(train_job: MakeJob) -> None:
    job = train_job(1, 1)
    result = run(job)
    found = checkpoint.load_scored(job.artifacts, result.checkpoint, spaces.models.build(job.spec))
    data = resident(job.settings.data, CPU)
    pixels = data.splits["val"].pixels[:5].permute(0, 3, 1, 2).float()
    again = (pixels - torch.tensor(json.loads(found["mean"]))) * torch.tensor(json.loads(found["scale"]))
    assert torch.equal(again, data.normalise(data.splits["val"].pixels[:5]))


@pytest.mark.parametrize("limit", [0.0, 0.5, 1e6], ids=["no limit", "clipped", "under the limit"])
def test_gradients_are_clipped_in_the_bits_of_torch(limit: float) -> None:
    ours, theirs = ([nn.Parameter(torch.zeros(size)) for size in ((3, 4), (5,), (2,))] for _ in range(2))
    torch.manual_seed(1)
    for one, other in zip(ours[:2], theirs[:2], strict=True):  # the last has none
        one.grad = torch.randn_like(one)
        other.grad = one.grad.clone()
    norm = train_module._clip(ours, limit)
    assert torch.equal(norm, nn.utils.clip_grad_norm_(theirs, limit or math.inf))
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad)
