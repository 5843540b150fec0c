"""Settings of data, training and cost: stdlib dataclasses, so that a config is checked without torch.

The types are checked by `search.config` (unknown keys are errors there); ranges are checked here, in
`__post_init__`, so that they hold however a settings object is made.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from workers.counting import plain
from workers.distillation_settings import DistillationSettings

STRICT: dict[str, Any] = {"extra": "forbid"}
LABELLED = "label:"
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What Ray takes for the value of a label."""
Runtime = Literal["torch", "torch-compile", "cuda-graph", "onnxruntime", "openvino", "tensorrt"]
RUNTIMES: dict[Runtime, str] = {
    "torch": "torch eager",
    "torch-compile": "torch compiled",
    "cuda-graph": "CUDA graph",
    "onnxruntime": "onnxruntime",
    "openvino": "OpenVINO",
    "tensorrt": "TensorRT",
}
"""What measures, and how it is called for people. `workers.runtimes.offered` knows where each can be had."""
Precision = Literal["fp32", "bf16", "fp16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16", "int8")
FINE_TUNING = ("head_rate", "backbone_rate", "layer_decay", "frozen_epochs")
"""Settings of a recipe that only fine-tuning uses."""
CUSTOM_NEEDS = ("optimizer", "schedule", "learning_rate")
"""Settings that recipe `custom` cannot be without."""


@dataclass(frozen=True)
class DataSettings:
    """Where images come from and how they are split.

    source: `digits` (scikit-learn's, 8 px), `idx` (gzipped MNIST-format files), `folder` (one folder a class,
        optionally below train/, val/ and test/), `npz` (numpy arrays), `torchvision` or `huggingface` (by name) or
        `webdataset` (tar files).
    path: the folder, or the file of `npz`; not needed for `digits`, and for `huggingface` in place of name.
    image_size: side in pixels that images are brought to; None keeps the source's own where it has one
        (8 for digits, the files' for idx and other arrays) and 64 for pictures.
    val_fraction, test_fraction: shares of the images that are split off, stratified by class, where the source
        brings no split of its own.
    train_limit, val_limit: use at most so many images, drawn stratified; None uses all.
    symmetries: changes that keep an image's label: `horizontal_flip`, `none`, or `auto` (flips for folder only).
    seed: draws the splits.
    max_bad: so many images that cannot be decoded are left out; more are an error.
    name: the data set of `torchvision` or `huggingface`. download: fetch it where it is not on this machine.
    image_column, label_column: of `huggingface`; None where there is one of the kind.
    balance: counts every class alike in training, by what is drawn (`sampler`) or by what an error weighs (`loss`).
    """

    source: Literal["digits", "idx", "folder", "npz", "torchvision", "huggingface", "webdataset"]
    path: str | None = None
    image_size: int | None = None
    val_fraction: float = 0.15
    test_fraction: float = 0.15
    train_limit: int | None = None
    val_limit: int | None = None
    symmetries: Literal["auto", "none", "horizontal_flip"] = "auto"
    seed: int = 0
    max_bad: int = 0
    name: str | None = None
    download: bool = False
    image_column: str | None = None
    label_column: str | None = None
    balance: Literal["none", "sampler", "loss"] = "none"
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        self._check_source()
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

    def _check_source(self) -> None:
        """What is needed beside the source, and what it has no use for."""
        if self.source == "huggingface":
            if self.path is None and self.name is None:
                raise ValueError("name: source 'huggingface' needs a name, or the path of a saved data set")
            if self.path is not None and self.name is not None:
                raise ValueError(
                    "name: source 'huggingface' takes a name or the path of a saved data set, not both; remove one"
                )
        elif self.source != "digits" and not self.path:
            raise ValueError(f"path: source {self.source!r} needs the {_PLACES[self.source]}")
        if self.source == "torchvision" and not self.name:
            raise ValueError("name: source 'torchvision' needs the name of a data set, such as CIFAR10")
        of_names = ("torchvision", "huggingface")
        uses = {"name": of_names, "download": of_names}
        uses |= dict.fromkeys(("image_column", "label_column"), ("huggingface",))
        for setting, sources in uses.items():
            if getattr(self, setting) and self.source not in sources:
                raise ValueError(
                    f"{setting}: source {self.source!r} takes none; only {' and '.join(sources)} do"
                )
        if self.download and self.name is None:
            raise ValueError("download: needs the name of what is to be fetched; remove it, or give name")


@dataclass(frozen=True)
class RecipeSettings:
    """How a candidate is trained. What is None takes the recipe's default: `workers.knobs` has them.

    recipe: `plain` (AdamW, warm-up and cosine, label smoothing, stochastic depth growing with depth, EMA, shifts
        and flips, from fresh weights); `deit` (plain with the augmentation of DeiT); `finetune` (plain from pretrained
        weights, at the rates below); `custom` (fresh weights, and nothing that is not set); `auto` fine-tunes
        candidates that have pretrained weights or inherit some, and trains others by `fresh_recipe`.
    epochs: length of the whole schedule; every rung is a prefix of it.
    batch_size: images a batch. A step takes `accumulation` batches.
    learning_rate: peak rate at 256 images a step, scaled linearly with their number; for fresh weights.
    weight_decay: spares norms, biases and what the network names.
    warmup_epochs: of a rate that rises from a hundredth of its peak; None takes a tenth of `epochs`.
    stochastic_depth: drop rate of the last block.
    ema_decay: decay an update of the averaged weights that are scored; 0 turns the average off.
    max_shift: farthest that an image is moved in training, as a share of its side, rounded down to pixels.
    weights_dir: folder with files of pretrained weights, NAME.safetensors, looked into before Hugging Face's cache and
        hub; None for those alone.
    head_rate: when fine-tuning, peak rate of the classifier at 256 images a step, scaled linearly likewise.
    backbone_rate: rate of the layers below the classifier, as a share of its rate, before layer_decay; 0 freezes them.
    layer_decay: rate of each layer as a share of the one above it; 1 for the same rate in all.
    fresh_recipe: with `auto`, the recipe of what has no pretrained weights; `auto` goes by `epochs`.
    schedule: after the warm-up, `cosine`, or `wsd`, a stable rate that decays at the end.
    dropout: of what the classifier sees.
    mixup, cutmix: parameters of the beta distributions of an image's share; 0 for none.
    erasing: share of the images that get a box of noise.
    rand_augment_magnitude, rand_augment_ops: RandAugment's strength, 0 to 10, and operations an image.
    repeated_augmentation: how often an image comes in an epoch, each time changed otherwise; the epoch stays as long.
    clip_norm: largest norm of a step's gradient; 0 for no limit.
    accumulation: batches whose gradients are averaged for a step.
    distillation: a teacher that candidates learn from; None for labels alone.
    precision, memory_format, compile, threads: how steps are executed; `auto` for what a probe finds fastest, once a
        family and search. threads: of a worker's CPU, a whole number.
    probe_seconds: longest time that a probe compares in; it takes less where less can be gained.
    inherit: family -> name of the pretrained weights that its candidates begin from parts of.
    frozen_epochs: when fine-tuning, of the start, in which only what did not come from pretrained weights learns: the
        classifier, most often.
    """

    recipe: Literal["auto", "plain", "deit", "finetune", "custom"] = "auto"
    epochs: int = 27
    batch_size: int = 128
    learning_rate: float | None = None
    weight_decay: float | None = None
    warmup_epochs: float | None = None
    label_smoothing: float | None = None
    stochastic_depth: float | None = None
    ema_decay: float | None = None
    max_shift: float | None = None
    seed: int = 0
    weights_dir: str | None = None
    head_rate: float | None = None
    backbone_rate: float | None = None
    layer_decay: float | None = None
    fresh_recipe: Literal["auto", "plain", "deit"] = "auto"
    optimizer: Literal["adamw", "lion", "muon"] | None = None
    schedule: Literal["cosine", "wsd"] | None = None
    dropout: float | None = None
    mixup: float | None = None
    cutmix: float | None = None
    erasing: float | None = None
    rand_augment_magnitude: float | None = None
    rand_augment_ops: int | None = None
    repeated_augmentation: int | None = None
    clip_norm: float | None = None
    accumulation: int | None = None
    distillation: DistillationSettings | None = None
    inherit: dict[str, str] | None = None
    frozen_epochs: float | None = None
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    memory_format: Literal["auto", "contiguous", "channels_last"] = "auto"
    compile: Literal["auto", "off", "on"] = "auto"
    threads: Any = "auto"
    probe_seconds: float = 6.0
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        _within("epochs", self.epochs, 1, 100_000)
        _within("batch_size", self.batch_size, 2, 65_536)
        for name, (low, high) in _KNOBS.items():
            value = getattr(self, name)
            if value is not None:
                if name.endswith("_epochs"):
                    _within(name, value, low, self.epochs, " (training.epochs)")
                else:
                    _within(name, value, low, high)
        if self.threads != "auto":
            if type(self.threads) is not int:
                raise ValueError(f"threads: {self.threads!r} is neither auto nor a whole number")
            _within("threads", self.threads, 1, 1024)
        if self.weights_dir == "":
            raise ValueError("weights_dir: is empty; name a folder or leave it out")
        _within("seed", self.seed, 0, 2**31 - 1)
        missing = [name for name in CUSTOM_NEEDS if getattr(self, name) is None]
        if self.recipe == "custom" and missing:
            raise ValueError(f"{missing[0]}: recipe custom implies nothing; give {', '.join(missing)}")

    @property
    def begins_fresh(self) -> bool:
        """Whether nothing begins from pretrained weights, whatever has some."""
        return self.recipe not in ("auto", "finetune")

    def fine_tunes(self, weights: str | None) -> bool:
        """Whether what has these pretrained weights begins from them; with `auto` and `finetune` it does.

        Raises ValueError for `finetune` where there are none.
        """
        if self.recipe == "finetune" and weights is None:
            raise ValueError(
                "recipe finetune begins from pretrained weights, and there are none; use auto or plain"
            )
        return weights is not None and not self.begins_fresh


_KNOBS = {
    "learning_rate": (1e-8, 10),
    "weight_decay": (0, 10),
    "warmup_epochs": (0, 100_000),
    "frozen_epochs": (0, 100_000),
    "label_smoothing": (0, 0.9),
    "stochastic_depth": (0, 0.9),
    "ema_decay": (0, 0.99999),
    "max_shift": (0, 0.5),
    "head_rate": (1e-8, 10),
    "backbone_rate": (0, 1),
    "layer_decay": (0.01, 1),
    "dropout": (0, 0.9),
    "mixup": (0, 10),
    "cutmix": (0, 10),
    "erasing": (0, 1),
    "rand_augment_magnitude": (0, 10),
    "rand_augment_ops": (0, 10),
    "repeated_augmentation": (1, 16),
    "clip_norm": (0, 1_000_000),
    "accumulation": (1, 1024),
    "probe_seconds": (0.1, 3600),
}
"""Smallest and largest value of each; warmup_epochs and frozen_epochs end with the epochs."""


@dataclass(frozen=True)
class CostSettings:
    """What is measured and under which conditions. One search has one device and thread count; objectives and
    constraints may name further runtimes.

    device: `auto` (the first GPU, else the CPU), `cpu`, `cuda` or `cuda:N`; or `{"label": NAME}`, kept as `label:NAME`:
        that of the Ray node with that label.
    batch_size: images a call for the latency.
    precision: `auto` is fp32. runtime: one of `RUNTIMES`; `workers.runtimes.offered` has what goes together.
    cache: `hot`, the same call again and again; `cold`, the last-level cache is emptied before each.
    again: measure what was measured before under the same conditions too.
    threads: CPU threads that a measured model may use.
    max_seconds, relative_error: repeat until the median's relative standard error is under `relative_error` or
        `max_seconds` have gone.
    energy_seconds: how long energy is counted for, on devices that have a counter; 0 leaves it out.
    drift_minutes: how often a reference model is measured again, to see whether the device is as it was; 0 for never.
    """

    device: Any = "auto"
    batch_size: int = 1
    precision: Literal["auto"] | Precision = "auto"
    runtime: Runtime = "torch"
    cache: Literal["hot", "cold"] = "hot"
    again: bool = False
    threads: int = 1
    max_seconds: float = 1.5
    relative_error: float = 0.01
    energy_seconds: float = 2.0
    drift_minutes: float = 30.0
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        object.__setattr__(self, "device", _device(self.device))
        _within("batch_size", self.batch_size, 1, 65_536)
        _within("threads", self.threads, 1, 1024)
        _within("max_seconds", self.max_seconds, 0.01, 3600)
        _within("relative_error", self.relative_error, 1e-6, 1)
        if self.energy_seconds != 0:
            _within("energy_seconds", self.energy_seconds, 2, 60)
        if self.drift_minutes != 0:
            _within("drift_minutes", self.drift_minutes, 0.01, 24 * 60)

    @property
    def label(self) -> str | None:
        """Of the Ray node that measures; None where the device is one of the machine that a job runs on."""
        return self.device.removeprefix(LABELLED) if self.device.startswith(LABELLED) else None

    @property
    def used_precision(self) -> Precision:
        """What `auto` comes to, too."""
        return "fp32" if self.precision == "auto" else self.precision


@dataclass(frozen=True)
class LimitSettings:
    """Guards against hangs and losses.

    step_seconds: longest silence inside one job, enforced in the worker. job_seconds: longest job, enforced by the
    driver. checkpoint_minutes: a training that takes longer writes a checkpoint as often, at the ends of epochs.
    disk_reserve_gb: as long as less is free where the artifacts are, the driver starts no job; 0 for never.
    """

    step_seconds: float = 300.0
    job_seconds: float = 24 * 3600.0
    max_attempts: int = 3
    checkpoint_minutes: float = 10.0
    disk_reserve_gb: float = 1.0
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    def __post_init__(self) -> None:
        _within("checkpoint_minutes", self.checkpoint_minutes, 0.01, 1440)
        _within("disk_reserve_gb", self.disk_reserve_gb, 0, 1e6)
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


def _device(given: Any) -> str:
    """A device as it is kept."""
    if isinstance(given, dict) and list(given) == ["label"]:
        given = f"{LABELLED}{given['label']}"
    text = given if isinstance(given, str) else ""
    if text.startswith(LABELLED):
        if not _LABEL.fullmatch(text.removeprefix(LABELLED)):
            raise ValueError(f"device: {text!r} needs a label of up to 63 letters, digits, dots and dashes")
    elif text not in ("auto", "cpu", "cuda") and not (text.startswith("cuda:") and text[5:].isdecimal()):
        raise ValueError(f"device: {given!r} is none of auto, cpu, cuda, cuda:N, {{label: NAME}}")
    return text


_PLACES = {
    "folder": "folder of its images",
    "idx": "folder of its files",
    "npz": "file of its arrays",
    "torchvision": "folder that the data set is in",
    "webdataset": "folder of its tar files",
}
"""What `path` names, by source."""


def _within(name: str, value: float, low: float, high: float, bound: str = "") -> None:
    """bound: what the upper end is, in words."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: {value} is not a number to use")
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {plain(low)} to {plain(high)}{bound}")
