from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from torch import Tensor, nn

from workers.data.batches import DeviceSplit, resident
from workers.errors import CandidateError
from workers.evaluate import _Counts, evaluate, evaluate_checkpoint, wilson
from workers.job import Decision, Job
from workers.settings import DataSettings
from workers.train import train

CPU = torch.device("cpu")


class Always(nn.Module):
    """Answers class `number`, whatever it sees."""

    def __init__(self, number: int, sure: float = 1.0) -> None:
        super().__init__()
        self.number, self.sure = number, sure

    def forward(self, images: Tensor) -> Tensor:
        logits = torch.zeros(len(images), 10)
        logits[:, self.number] = self.sure
        return logits


def test_accuracy_and_recall_count_every_image_once() -> None:
    data = resident(DataSettings("digits"), CPU)
    scores, _ = evaluate(Always(4), data, "val", 2, 64)
    share = (data.splits["val"].labels == 4).float().mean().item()
    assert scores.accuracy == pytest.approx(share)
    assert scores.recall == (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert scores.num_images == len(data.splits["val"]) == 269
    assert (scores.split, scores.epoch, scores.class_names) == ("val", 2, data.class_names)
    assert scores.accuracy_low < scores.accuracy < scores.accuracy_high


def test_every_wrong_answer_is_a_confusion_of_two_classes() -> None:
    data = resident(DataSettings("digits"), CPU)
    scores, _ = evaluate(Always(4), data, "val", 2, 64)
    counts = torch.bincount(data.splits["val"].labels, minlength=10).tolist()
    assert scores.class_counts == tuple(counts)
    assert {(own, 4, count) for own, count in enumerate(counts) if own != 4} == set(scores.confusions)
    assert [count for *_, count in scores.confusions] == sorted(counts[:4] + counts[5:], reverse=True)


def test_recall_has_wilsons_interval_and_none_without_images() -> None:
    data = resident(DataSettings("digits"), CPU)
    kept = data.splits["val"].labels != 7
    part = DeviceSplit(data.splits["val"].pixels[kept], data.splits["val"].labels[kept])
    scores, _ = evaluate(Always(4), replace(data, splits={"val": part}), "val", 2, 64)
    own = scores.class_counts[4]
    assert (scores.recall_low[4], scores.recall_high[4]) == pytest.approx(wilson(own, own))
    assert (scores.recall[7], scores.recall_low[7], scores.recall_high[7]) == (None, None, None)


@given(seed=st.integers(0, 10_000))
def test_the_calibration_error_is_the_gap_between_confidence_and_accuracy_in_15_bins(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits, labels = (
        torch.randn(200, 3, generator=generator) * 3,
        torch.randint(3, (200,), generator=generator),
    )
    counts = _Counts(3, CPU)
    for part in (slice(0, 150), slice(150, 200)):
        counts.add(logits[part], labels[part])
    confidence, answers = logits.softmax(1).max(1)
    expected = 0.0
    for low in range(15):
        inside = (confidence >= low / 15) & (confidence < (low + 1) / 15)
        if inside.any():
            gap = confidence[inside].mean() - (answers == labels)[inside].float().mean()
            expected += abs(gap.item()) * inside.sum().item() / 200
    assert counts.overconfidence / 200 == pytest.approx(expected, abs=1e-5)


def test_a_network_that_is_sure_and_wrong_is_badly_calibrated() -> None:
    data = resident(DataSettings("digits"), CPU)
    sure, unsure = (evaluate(Always(4, how), data, "val", 2, 64)[0] for how in (50.0, 0.0))
    assert sure.calibration_error == pytest.approx(1 - sure.accuracy, abs=1e-6)
    assert unsure.calibration_error < 0.02


def test_scores_do_not_depend_on_the_batch_size() -> None:
    data = resident(DataSettings("digits"), CPU)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    small, large = (evaluate(model, data, "test", 1, size)[0] for size in (64, 300))
    assert small.recall == large.recall
    assert small.loss == pytest.approx(large.loss, rel=1e-5)


def test_evaluation_leaves_the_training_mode_as_it_was() -> None:
    data = resident(DataSettings("digits"), CPU)
    model = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(64, 10)).train()
    evaluate(model, data, "val", 1, 64)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_answers_that_are_not_finite_are_the_candidates_fault() -> None:
    data = resident(DataSettings("digits"), CPU)
    with pytest.raises(CandidateError, match="loss on the val split is nan after epoch 3"):
        evaluate(Always(1, float("nan")), data, "val", 3, 64)


def test_pauses_are_summed() -> None:
    data = resident(DataSettings("digits"), CPU)
    _, paused = evaluate(Always(1), data, "val", 1, 90, lambda: 0.25)
    assert paused == pytest.approx(0.25 * 3)


@given(total=st.integers(1, 2000), data=st.data())
def test_the_interval_is_wilsons(total: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, total))
    expected = binomtest(correct, total).proportion_ci(method="wilson")
    assert wilson(correct, total) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.usefixtures("one_thread")
def test_a_checkpoint_scores_on_validation_as_it_did_when_it_was_written(
    train_job: Callable[..., Job],
) -> None:
    job = train_job(1, 2)
    result = train(job, CPU, lambda report: Decision.CONTINUE, lambda: 0.0)
    again = train_job(0, 0, checkpoint=result.checkpoint)
    scores, digest = evaluate_checkpoint(again, CPU, "val")
    assert scores == result.evaluation
    assert digest == result.data_digest
    assert evaluate_checkpoint(again, CPU, "test")[0].num_images == 269
