"""Settings of data, training and cost: stdlib dataclasses, so that a config is checked without torch.

The types are checked by `search.config` (unknown keys are errors there); ranges are checked here, in
`__post_init__`, so that they hold however a settings object is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

STRICT: dict[str, Any] = {"extra": "forbid"}
Runtime = Literal["torch", "onnxruntime"]
RUNTIMES: dict[Runtime, str] = {"torch": "torch eager", "onnxruntime": "onnxruntime"}
"""What measures, and how it is called for people."""
FINE_TUNING = ("head_rate", "backbone_rate", "layer_decay")
"""Settings of a recipe that only fine-tuning uses."""


@dataclass(frozen=True)
class DataSettings:
    """Where images come from and how they are split.

    source: `digits` (scikit-learn's, 8 px), `idx` (gzipped MNIST-format files) or `folder` (one folder a class,
        optionally below train/, val/ and test/).
    path: the folder; not needed for `digits`.
    image_size: side in pixels that images are brought to; None keeps the source's own where it has one
        (8 for digits, the files' for idx) and 64 for folder.
    val_fraction, test_fraction: shares of the images that are split off, stratified by class, where the source
        brings no split of its own.
    train_limit, val_limit: use at most so many images, drawn stratified; None uses all.
    symmetries: changes that keep an image's label: `horizontal_flip`, `none`, or `auto` (flips for folder only).
    seed: draws the splits.
    max_bad: so many images that cannot be decoded are left out; more are an error.
    """

    source: Literal["digits", "idx", "folder"]
    path: str | None = None
    image_size: int | None = None
    val_fraction: float = 0.15
    test_fraction: float = 0.15
    train_limit: int | None = None
    val_limit: int | None = None
    symmetries: Literal["auto", "none", "horizontal_flip"] = "auto"
    seed: int = 0
    max_bad: int = 0
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        if self.source != "digits" and not self.path:
            raise ValueError(f"path: source {self.source!r} needs the folder of its images")
        if self.image_size is not None:
            _within("image_size", self.image_size, 4, 1024)
        for name in ("val_fraction", "test_fraction"):
            _within(name, getattr(self, name), 0.01, 0.9)
        if self.val_fraction + self.test_fraction > 0.9:
            raise ValueError(
                "val_fraction: with test_fraction it leaves under a tenth of the images for training"
            )
        for name in ("train_limit", "val_limit"):
            if getattr(self, name) is not None:
                _within(name, getattr(self, name), 2, 100_000_000)
        _within("max_bad", self.max_bad, 0, 100_000_000)
        _within("seed", self.seed, 0, 2**31 - 1)


@dataclass(frozen=True)
class RecipeSettings:
    """How a candidate is trained.

    recipe: `plain` (AdamW, warm-up and cosine, label smoothing, stochastic depth growing with depth, EMA, shifts
        and flips, from fresh weights); `finetune` (the same from pretrained weights, at the rates below); `auto`
        fine-tunes candidates that have pretrained weights.
    epochs: length of the whole schedule; every rung is a prefix of it.
    learning_rate: peak rate at a batch of 256, scaled linearly with the batch size; for fresh weights.
    warmup_epochs: None takes a tenth of `epochs`.
    stochastic_depth: drop rate of the last block.
    ema_decay: decay an update of the averaged weights that are scored; 0 turns the average off.
    max_shift: farthest that an image is moved in training, as a share of its side, rounded down to pixels.
    weights_dir: folder with files of pretrained weights, NAME.safetensors, looked into before Hugging Face's cache and
        hub; None for those alone.
    head_rate: when fine-tuning, peak rate of the classifier at a batch of 256, scaled linearly likewise.
    backbone_rate: rate of the layers below the classifier, as a share of its rate, before layer_decay; 0 freezes them.
    layer_decay: rate of each layer as a share of the one above it; 1 for the same rate in all.
    """

    recipe: Literal["auto", "plain", "finetune"] = "auto"
    epochs: int = 27
    batch_size: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 0.05
    warmup_epochs: float | None = None
    label_smoothing: float = 0.1
    stochastic_depth: float = 0.05
    ema_decay: float = 0.98
    max_shift: float = 0.1
    seed: int = 0
    weights_dir: str | None = None
    head_rate: float = 5e-3
    backbone_rate: float = 0.2
    layer_decay: float = 0.75
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        _within("epochs", self.epochs, 1, 100_000)
        _within("batch_size", self.batch_size, 2, 65_536)
        _within("learning_rate", self.learning_rate, 1e-8, 10)
        _within("weight_decay", self.weight_decay, 0, 10)
        if self.warmup_epochs is not None:
            _within("warmup_epochs", self.warmup_epochs, 0, self.epochs)
        _within("label_smoothing", self.label_smoothing, 0, 0.9)
        _within("stochastic_depth", self.stochastic_depth, 0, 0.9)
        _within("ema_decay", self.ema_decay, 0, 0.99999)
        _within("max_shift", self.max_shift, 0, 0.5)
        if self.weights_dir == "":
            raise ValueError("weights_dir: is empty; name a folder or leave it out")
        _within("head_rate", self.head_rate, 1e-8, 10)
        _within("backbone_rate", self.backbone_rate, 0, 1)
        _within("layer_decay", self.layer_decay, 0.01, 1)
        _within("seed", self.seed, 0, 2**31 - 1)

    def fine_tunes(self, weights: str | None) -> bool:
        """Whether what has these pretrained weights begins from them; with `plain`, nothing does.

        Raises ValueError for `finetune` where there are none.
        """
        if self.recipe == "finetune" and weights is None:
            raise ValueError(
                "recipe finetune begins from pretrained weights, and there are none; use auto or plain"
            )
        return weights is not None and self.recipe != "plain"


@dataclass(frozen=True)
class CostSettings:
    """What is measured and under which conditions. One search has one device, runtime, precision and thread count.

    device: `auto` (the first GPU, else the CPU), `cpu`, `cuda` or `cuda:N`.
    batch_size: images a call for the latency.
    runtime: `torch` (eager), or `onnxruntime` on the CPU, which every candidate is converted for (extra `export`).
    threads: CPU threads that a measured model may use.
    max_seconds, relative_error: repeat until the median's relative standard error is under `relative_error` or
        `max_seconds` have gone.
    """

    device: str = "auto"
    batch_size: int = 1
    precision: Literal["auto", "fp32"] = "auto"
    runtime: Runtime = "torch"
    threads: int = 1
    max_seconds: float = 1.5
    relative_error: float = 0.01
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        if self.device not in ("auto", "cpu", "cuda") and not (
            self.device.startswith("cuda:") and self.device[5:].isdecimal()
        ):
            raise ValueError(f"device: {self.device!r} is none of auto, cpu, cuda, cuda:N")
        _within("batch_size", self.batch_size, 1, 65_536)
        _within("threads", self.threads, 1, 1024)
        _within("max_seconds", self.max_seconds, 0.01, 3600)
        _within("relative_error", self.relative_error, 1e-6, 1)


@dataclass(frozen=True)
class LimitSettings:
    """Guards against hangs. step_seconds: longest silence inside one job, enforced in the worker;
    job_seconds: longest job, enforced by the driver."""

    step_seconds: float = 300.0
    job_seconds: float = 24 * 3600.0
    max_attempts: int = 3
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        _within("step_seconds", self.step_seconds, 1, 86_400)
        _within("job_seconds", self.job_seconds, 1, 30 * 86_400)
        _within("max_attempts", self.max_attempts, 1, 20)


@dataclass(frozen=True)
class JobSettings:
    """All settings that a worker needs for any job of one search."""

    data: DataSettings
    recipe: RecipeSettings = field(default_factory=RecipeSettings)
    cost: CostSettings = field(default_factory=CostSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)


def _within(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: {value} is not a number to use")
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {low:g} to {high:g}")
