from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

import spaces.models
from spaces.spec import ArchSpec
from workers import checkpoint, distillation
from workers.data.batches import Augment, dealt, resident, training_batches
from workers.distillation_settings import DistillationSettings, TeacherSettings
from workers.errors import CheckpointError, TeacherError
from workers.job import Decision, Job, Kind, TeacherRef
from workers.settings import RecipeSettings
from workers.teach import teach
from workers.train import TrainResult, train

CPU = torch.device("cpu")
MakeJob = Callable[..., Job]
pytestmark = pytest.mark.usefixtures("one_thread")

TEACHER = ArchSpec(
    "paretovit_resnet",
    {"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1], "stem_stride": 1, "in_chans": 1, "num_classes": 10},
    8,
)
DEIT = ArchSpec(
    "deit_base_distilled_patch16_224",
    {
        "img_size": 8,
        "patch_size": 2,
        "embed_dim": 16,
        "depth": 2,
        "num_heads": 2,
        "mlp_ratio": 2.0,
        "in_chans": 1,
        "num_classes": 10,
    },
    8,
)


def settings(kind: str, **more: Any) -> DistillationSettings:
    return DistillationSettings(TeacherSettings(train="resnet"), kind=kind, **more)  # pyright: ignore[reportArgumentType]


def run(job: Job) -> TrainResult:
    return train(job, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)


@pytest.fixture
def taught(train_job: MakeJob) -> Callable[[], TeacherRef]:
    """Trains a teacher for one epoch."""

    def make(**changes: Any) -> TeacherRef:
        asked = train_job(
            1, 1, kind=Kind.TEACH, candidate=0, spec=TEACHER, distillation=settings("soft"), **changes
        )
        made = teach(asked, CPU, lambda _: Decision.CONTINUE, lambda: 0.0)
        return TeacherRef("resnet", TEACHER, made.checkpoint)

    return make


def stored(job: Job, result: TrainResult) -> dict[str, Tensor]:
    return load_file(Path(job.artifacts) / result.checkpoint.path)


SCORES = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
ANSWERS = torch.tensor([[0.0, 1.0], [0.0, 3.0]])
LABELS = torch.tensor([0, 1])


def of_labels(scores: Tensor) -> Tensor:
    return functional.cross_entropy(scores, LABELS)


def test_the_soft_loss_is_the_divergence_computed_by_hand() -> None:
    def logistic(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    expected = 0.0
    for ours, theirs in ((1.0, -1.0), (-2.0, -3.0)):  # score of class 0 less that of class 1
        p, q = logistic(theirs / 2), logistic(ours / 2)
        expected += p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    expected *= 2**2 / 2
    assert distillation.soft_loss(SCORES, ANSWERS, 2.0).item() == pytest.approx(expected, rel=1e-6)


def test_hard_and_soft_losses_are_mixed_with_the_labels_by_alpha() -> None:
    by_labels = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(-2))) / 2
    by_classes = (math.log(1 + math.exp(1)) + math.log(1 + math.exp(-2))) / 2  # it names class 1 twice
    classes = distillation.answers_of(ANSWERS, "hard")
    assert classes.tolist() == [1, 1]
    found = distillation.mixed(SCORES, classes, settings("hard", alpha=0.25), of_labels)
    assert found.item() == pytest.approx(0.75 * by_labels + 0.25 * by_classes, rel=1e-6)
    soft = distillation.soft_loss(SCORES, ANSWERS, 3.0).item()
    found = distillation.mixed(SCORES, ANSWERS, settings("soft", alpha=0.25), of_labels)
    assert found.item() == pytest.approx(0.75 * by_labels + 0.25 * soft, rel=1e-6)


def test_the_class_head_learns_labels_and_the_distillation_head_the_teachers_classes() -> None:
    heads = SCORES.clone().requires_grad_(), SCORES.clone().requires_grad_()
    distillation.mixed(heads, torch.tensor([1, 1]), settings("token"), of_labels).backward()
    probabilities = SCORES.softmax(1)
    for head, targets in zip(heads, (LABELS, torch.tensor([1, 1])), strict=True):
        expected = 0.5 * (probabilities - functional.one_hot(targets, 2)) / 2
        assert head.grad is not None
        torch.testing.assert_close(head.grad, expected)


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_the_losses_are_those_of_timm(kind: str) -> None:
    """timm's soft and hard losses of DeiT's heads, at equal weights."""
    from timm.task import TokenDistillationTask

    torch.manual_seed(0)
    student, teacher = spaces.models.build(DEIT), spaces.models.build(TEACHER)
    images, labels = torch.randn(6, 1, 8, 8), torch.randint(10, (6,))
    task = TokenDistillationTask(
        student,
        teacher,
        torch.nn.CrossEntropyLoss(),
        distill_type=kind,
        task_loss_weight=0.7,
        temperature=3.0,
    )
    task.train()
    task.student_mean, task.student_std = task.teacher.mean_kd, task.teacher.std_kd
    expected = task(images, labels)["loss"]
    of_class, of_token = student(images)
    with torch.no_grad():
        answers = distillation.answers_of(teacher(images), kind)
    of_teacher = (
        distillation.soft_loss(of_token, answers, 3.0)
        if kind == "soft"
        else functional.cross_entropy(of_token, answers)
    )
    found = 0.7 * functional.cross_entropy(of_class, labels) + 0.3 * of_teacher
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("shift", [0.0, 0.13], ids=["cached", "augmented"])
@pytest.mark.parametrize(("kind", "spec"), [("soft", None), ("hard", None), ("token", DEIT)])
def test_stopping_and_resuming_ends_in_the_same_bits(
    train_job: MakeJob, taught: Callable[..., TeacherRef], kind: str, spec: ArchSpec | None, shift: float
) -> None:
    changes = {"distillation": settings(kind), "teacher": taught(), "max_shift": shift}
    changes |= {"spec": spec} if spec else {}
    whole = train_job(1, 3, **changes)
    at_once = run(whole)
    first = run(train_job(1, 1, id=8, **changes))
    distillation._held.clear()  # as in another process
    second = run(train_job(2, 3, id=9, checkpoint=first.checkpoint, **changes))
    expected, found = stored(whole, at_once), stored(whole, second)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert at_once.evaluation == second.evaluation
    labels = run(train_job(1, 3, id=10, **changes | {"teacher": None}))
    assert any(not torch.equal(value, stored(whole, labels)[name]) for name, value in expected.items())


def test_answers_are_kept_where_no_image_is_changed_and_the_note_says_how_large_they_are(
    train_job: MakeJob, taught: Callable[..., TeacherRef]
) -> None:
    changes: dict[str, Any] = {"distillation": settings("soft"), "teacher": taught()}
    kept = run(train_job(1, 1, max_shift=0.0, **changes)).notes["teacher"]
    assert kept == (
        "learns from resnet, whose scores of all 200 training images are kept on the device: 0.01 MB"
    )
    asked = run(train_job(1, 1, max_shift=0.13, **changes)).notes["teacher"]
    assert asked == "learns from resnet, which is asked about every batch (they are changed at random)"
    assert "teacher" not in run(train_job(1, 1)).notes


def test_answers_that_would_take_too_much_are_not_kept(
    train_job: MakeJob, taught: Callable[..., TeacherRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distillation, "MOST_CACHED", 100)
    changes: dict[str, Any] = {"distillation": settings("hard"), "teacher": taught(), "max_shift": 0.0}
    assert (
        "asked about every batch (its answers would take" in run(train_job(1, 1, **changes)).notes["teacher"]
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_kept_answers_are_those_to_the_images_of_each_batch(train_job: MakeJob, seed: int) -> None:
    data = resident(train_job(1, 1).settings.data, CPU)
    labels = data.splits["train"].labels
    batches = training_batches(data, 64, Augment(), seed)
    for places, (_, found) in zip(dealt(data, 64, seed), batches, strict=True):
        assert torch.equal(labels[places], found)


def test_the_teacher_sees_the_images_that_the_student_sees(
    train_job: MakeJob, taught: Callable[..., TeacherRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, list[Tensor]] = {"student": [], "teacher": []}
    ref = taught()
    build = spaces.models.build

    def watched(spec: ArchSpec, *more: Any, **keywords: Any) -> torch.nn.Module:
        network = build(spec, *more, **keywords)
        who = "teacher" if spec == TEACHER else "student"

        def see(module: torch.nn.Module, given: tuple[Tensor, ...]) -> None:
            if who == "teacher" or module.training:
                seen[who].append(given[0].clone())

        network.register_forward_pre_hook(see)
        return network

    monkeypatch.setattr(spaces.models, "build", watched)
    run(train_job(1, 1, distillation=settings("soft"), teacher=ref, max_shift=0.13, ema_decay=0.0))
    assert len(seen["student"]) == len(seen["teacher"]) == 4
    assert all(torch.equal(*pair) for pair in zip(seen["student"], seen["teacher"], strict=True))


def test_the_teacher_stays_as_it_is(train_job: MakeJob, taught: Callable[..., TeacherRef]) -> None:
    ref = taught()
    job = train_job(1, 1, distillation=settings("soft"), teacher=ref, max_shift=0.13)
    data = resident(job.settings.data, CPU)
    found = distillation.begin(job, spaces.models.build(job.spec), data, True, lambda: 0.0)
    assert found is not None
    before = {name: value.clone() for name, value in found.network.state_dict().items()}
    images = torch.randn(4, 1, 8, 8, requires_grad=True)
    scores = torch.randn(4, 10, requires_grad=True)
    found.loss(scores, images, lambda scores: scores.sum()).backward()
    assert images.grad is None
    assert all(torch.equal(value, before[name]) for name, value in found.network.state_dict().items())


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_a_teacher_that_cannot_be_read_is_the_teachers_error(
    train_job: MakeJob, taught: Callable[..., TeacherRef], harm: str
) -> None:
    ref = taught()
    job = train_job(1, 1, distillation=settings("soft"), teacher=ref)
    path = Path(job.artifacts, ref.checkpoint.path)
    path.unlink() if harm == "missing" else path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(TeacherError, match=r"teacher resnet: .*(missing|has changed)"):
        run(job)


def test_a_checkpoint_goes_on_under_the_same_teacher_and_settings_only(
    train_job: MakeJob, taught: Callable[..., TeacherRef]
) -> None:
    ref, other = taught(), taught(id=9, seed=1)
    changes: dict[str, Any] = {"distillation": settings("soft"), "teacher": ref}
    first = run(train_job(1, 1, id=8, **changes))
    for different in (
        {"teacher": other},
        {"distillation": settings("soft", alpha=0.6)},
        {"distillation": settings("soft", temperature=2.0)},
        {"distillation": settings("hard")},
        {"teacher": None},
    ):
        with pytest.raises(CheckpointError, match="teacher is"):
            run(train_job(2, 2, checkpoint=first.checkpoint, **changes | different))
    labels = run(train_job(1, 1, id=11))
    with pytest.raises(CheckpointError, match="teacher is None"):
        run(train_job(2, 2, checkpoint=labels.checkpoint, **changes))


def test_the_fingerprint_of_a_training_on_labels_is_what_it_was() -> None:
    """Of the release before distillation, so that its checkpoints go on."""
    assert RecipeSettings().distillation is None
    from workers.job import DataSettings, JobSettings

    job = Job(1, 1, 1, Kind.TRAIN, "s", 3, TEACHER, JobSettings(DataSettings("digits")), "", 1, 1)
    assert checkpoint._identity(job, "d") == {
        "candidate": "3",
        "spec": TEACHER.digest,
        "recipe": "930ee4645759ff96",
        "data": "d",
    }


def test_jobs_with_a_teacher_cross_as_json(train_job: MakeJob, taught: Callable[..., TeacherRef]) -> None:
    job = train_job(1, 1, distillation=settings("soft", temperature=2.0), teacher=taught())
    assert Job.from_json(job.to_json()) == job
    plain = train_job(1, 1)
    assert Job.from_json(plain.to_json()) == plain


def test_a_deit_that_was_distilled_is_scored_by_the_mean_of_its_heads(
    train_job: MakeJob, taught: Callable[..., TeacherRef]
) -> None:
    job = train_job(1, 1, spec=DEIT, distillation=settings("token"), teacher=taught())
    result = run(job)
    network = spaces.models.build(DEIT)
    checkpoint.load_scored(job.artifacts, result.checkpoint, network)
    network.eval()
    data = resident(job.settings.data, CPU)
    images = data.normalise(data.splits["val"].pixels)
    labels = data.splits["val"].labels
    with torch.no_grad():
        right = (network(images).argmax(1) == labels).float().mean().item()
    assert result.evaluation.accuracy == pytest.approx(right)
