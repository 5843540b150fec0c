"""Training speed on one device: our epochs beside a bare loop, by precision, memory format and compilation.

python tests/benchmarks/gpu_training.py [--device cuda|cpu] [--seconds N]

Prints one JSON document. It needs `spaces`, `workers`, torch and timm, and ends within N seconds or a little more (240
unless told otherwise); what there was no time for is listed under `left_out`. On a CPU the networks are cut to two
narrow blocks, and nothing is compiled: that path shows that the program runs, and its figures compare nothing.

Our epochs and the bare loop take turns; each is judged by its best turn. tf32 is torch's switch for the whole process.
Compiled networks are measured in the bare loop only. `probes` has what a probe job would choose for ViT-Ti at each
side, and the step times that it saw; nothing is compiled in it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the packages are not installed

import numpy as np
import timm
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from spaces.spec import ArchSpec
from workers import train
from workers.data.batches import resident
from workers.execution import Execution, ProbeTask
from workers.job import Decision, EpochReport, Job, Kind
from workers.perform import perform
from workers.recipe import compose
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings

MODELS = {"ViT-Ti": "vit_tiny_patch16_224", "ViT-S": "vit_small_patch16_224"}
PATCHES = {32: 4, 224: 16}
PRECISIONS = ("fp32", "tf32", "bf16")
MOST_EPOCHS = 1000
CUT = {"depth": 2, "embed_dim": 48, "num_heads": 3}
"""Of the networks on a CPU."""


@dataclass(frozen=True)
class Setting:
    """What one figure is of. compiled: by torch.compile with its defaults."""

    model: str
    image_size: int
    precision: str
    memory_format: str = "contiguous"
    compiled: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether training by our epochs can be like this."""
        return not self.compiled

    @property
    def execution(self) -> Execution:
        precision = "bf16" if self.precision == "bf16" else "fp32"
        last = self.memory_format == "channels_last"
        return Execution(precision, "channels_last" if last else "contiguous", threads=0)


@dataclass(frozen=True)
class Scale:
    """How large everything is on a device. images: side -> how many are trained on."""

    batch_size: int
    images: dict[int, int]
    args: dict[str, Any]
    compiles: bool


GPU = Scale(128, {32: 6400, 224: 1280}, {}, compiles=True)
CPU = Scale(8, {32: 32, 224: 16}, CUT, compiles=False)


def main(device: torch.device, seconds: float) -> dict[str, Any]:
    """Measures all settings that there is time for. Cheap and important ones come first."""
    deadline = time.monotonic() + seconds
    scale = GPU if device.type == "cuda" else CPU
    chosen = list(settings(scale))
    results: list[dict[str, Any]] = []
    left_out: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for side in PATCHES:
            write_images(Path(folder, str(side)), side, scale.images[side])
        resume = resumed(scale, device, Path(folder))
        probes = [probed(side, scale, device, Path(folder)) for side in PATCHES]
        for number, setting in enumerate(chosen):
            share = (deadline - time.monotonic()) / (len(chosen) - number)
            if share <= 0 and results:
                left_out.append(asdict(setting))
                continue
            results.append(
                asdict(setting) | measured(setting, scale, device, Path(folder), max(share, 0) / 2)
            )
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "timm": timm.__version__,
        "batch_size": scale.batch_size,
        "cut_networks": bool(scale.args),
        "results": results,
        "resume": resume,
        "probes": probes,
        "left_out": left_out,
    }


def settings(scale: Scale) -> Iterator[Setting]:
    places = [(model, side) for side in PATCHES for model in MODELS]
    for precision in PRECISIONS:
        yield from (Setting(*place, precision) for place in places)
    for precision in PRECISIONS:
        yield from (Setting(*place, precision, "channels_last") for place in places)
    if scale.compiles:
        for precision in reversed(PRECISIONS):
            yield from (Setting(*place, precision, compiled=True) for place in places)


def measured(
    setting: Setting, scale: Scale, device: torch.device, folder: Path, seconds: float
) -> dict[str, Any]:
    """Images a second of both loops and their ratio, null for ours where it cannot be like this. peak_memory_mb: of the
    bare loop; null on a CPU. loss: of its last batch."""
    job = job_of(setting, scale, folder, MOST_EPOCHS)
    with precision_of(setting.precision):
        job = replace(job, execution=setting.execution)
        bare = Bare(setting, scale, job, device)
        ours = our_rates(job, device, bare, seconds) if setting.is_ours else []
        ends = time.monotonic() + seconds
        while len(bare.rates) < 2 or (not ours and time.monotonic() < ends):
            bare.turn()
    best = max(bare.rates[1:])
    return {
        "bare_images_per_second": round(best, 1),
        "our_images_per_second": round(max(ours), 1) if ours else None,
        "ratio": round(max(ours) / best, 3) if ours else None,
        "peak_memory_mb": bare.peak_mb,
        "loss": bare.loss,
    }


class Bare:
    """Forward, loss, backward and step, on one epoch's synthetic batches that are on the device already."""

    def __init__(self, setting: Setting, scale: Scale, job: Job, device: torch.device) -> None:
        last = setting.memory_format == "channels_last"
        self._format = torch.channels_last if last else torch.contiguous_format
        self._device = device
        is_bf16 = setting.precision == "bf16"
        self._casting = torch.autocast(device.type, torch.bfloat16, enabled=is_bf16)
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        training = compose(job.spec, job.settings.recipe, 10, 0, device)
        training.ema = None
        self._optimizer = training.optimizer
        network = training.model.to(memory_format=self._format)  # pyright: ignore[reportCallIssue]
        self._network: Any = torch.compile(network) if setting.compiled else network
        shape = (scale.batch_size, 3, setting.image_size, setting.image_size)
        self._images = torch.randn(shape, device=device).to(memory_format=self._format)
        self._labels = torch.randint(2, (scale.batch_size,), device=device)
        self._steps = max(1, scale.images[setting.image_size] // scale.batch_size)
        self.rates: list[float] = []
        self.peak_mb: float | None = None
        self.loss = float("nan")

    def turn(self) -> None:
        """One epoch; the first one warms up, and compiles."""
        started = time.perf_counter()
        loss: Tensor | None = None
        for _ in range(self._steps):
            self._optimizer.zero_grad(set_to_none=True)
            with self._casting:
                scores = self._network(self._images)
            loss = functional.cross_entropy(scores.float(), self._labels, label_smoothing=0.1)
            loss.backward()
            self._optimizer.step()
        assert loss is not None
        self.loss = loss.item()  # waits for the device
        self.rates.append(self._steps * len(self._labels) / (time.perf_counter() - started))
        if self._device.type == "cuda":
            self.peak_mb = round(torch.cuda.max_memory_allocated(self._device) / 1e6, 1)


def our_rates(job: Job, device: torch.device, bare: Bare, seconds: float) -> list[float]:
    """Images a second of our epochs but the first, without validation; after each the bare loop has its turn."""
    rates: list[float] = []
    validation: list[float] = []
    count = len(resident(job.settings.data, device).splits["train"])
    bare.turn()  # before ours takes memory of its own
    ends = time.monotonic() + seconds

    def take_turns(report: EpochReport) -> Decision:
        rates.append(count / (report.seconds - validation[-1]))
        bare.turn()
        return Decision.STOP if len(rates) > 1 and time.monotonic() > ends else Decision.CONTINUE

    evaluate = train.evaluate

    def watched(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        found = evaluate(*args, **kwargs)
        validation.append(time.perf_counter() - started)
        return found

    train.evaluate = watched
    try:
        train.train(job, device, take_turns, lambda: 0.0)
    finally:
        train.evaluate = evaluate
    return rates[1:]


def probed(side: int, scale: Scale, device: torch.device, folder: Path) -> dict[str, Any]:
    """What a probe job of a search would choose, for 27 epochs of 20 candidates."""
    job = job_of(Setting("ViT-Ti", side, "fp32"), scale, folder, 27)
    recipe = replace(job.settings.recipe, compile="off", probe_seconds=2.0)
    settings = replace(job.settings, recipe=recipe, cost=CostSettings(device=str(device)))
    job = replace(job, kind=Kind.PROBE, settings=settings, probe=ProbeTask(27, 27 * 20))
    outcome = perform(job, lambda _: Decision.CONTINUE)
    found = outcome.probed
    if found is None:
        return {"image_size": side, "failed": outcome.reason}
    return {
        "image_size": side,
        "chosen": found.execution.words,
        "speed": round(found.speed, 3),
        "why": found.why,
        "step_ms": {trial.execution.words: list(trial.step_ms) for trial in found.trials},
    }


def resumed(scale: Scale, device: torch.device, folder: Path) -> dict[str, Any]:
    """Whether epochs 1 to 4 end in the same bits at once and in two jobs, on this device, in fp32."""
    setting = Setting("ViT-Ti", 32, "fp32")

    def run(first: int, last: int, number: int, checkpoint: Any = None) -> Any:
        job = replace(job_of(setting, scale, folder, 4), id=number, first_epoch=first, last_epoch=last)
        job = replace(job, checkpoint=checkpoint)
        return train.train(job, device, lambda _: Decision.CONTINUE, lambda: 0.0).checkpoint

    with precision_of(setting.precision):
        whole, again = run(1, 4, 1), run(1, 4, 2)
        parts = run(3, 4, 4, run(1, 2, 3))
    weights = [load_file(Path(folder, "artifacts", ref.path)) for ref in (whole, again, parts)]
    return {
        "run_again": difference(weights[0], weights[1]),
        "stopped_and_resumed": difference(weights[0], weights[2]),
    }


def difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> dict[str, Any]:
    largest = max((one[name].float() - other[name].float()).abs().max().item() for name in one)
    return {"same_bits": all(torch.equal(one[name], other[name]) for name in one), "largest": largest}


def job_of(setting: Setting, scale: Scale, folder: Path, epochs: int) -> Job:
    side = setting.image_size
    args = {"img_size": side, "patch_size": PATCHES[side], "in_chans": 3, "num_classes": 2} | scale.args
    spec = ArchSpec(MODELS[setting.model], args, side)
    data = DataSettings("folder", str(folder / str(side)), image_size=side)
    recipe = RecipeSettings(recipe="plain", epochs=epochs, batch_size=scale.batch_size)
    artifacts = str(folder / "artifacts")
    return Job(9, 1, 1, Kind.TRAIN, "speed", 1, spec, JobSettings(data, recipe), artifacts, 1, epochs)


@contextmanager
def precision_of(name: str) -> Iterator[None]:
    backends: Any = torch.backends
    places = (backends.cuda.matmul, backends.cudnn.conv)
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = "ieee" if name == "fp32" else "tf32"
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.fp32_precision = value


def write_images(folder: Path, side: int, count: int) -> None:
    """Noise in two classes: `count` images to train on, and an eighth as many to validate on and to test."""
    rng = np.random.default_rng(0)
    sizes = {"train": count, "val": max(2, count // 8), "test": max(2, count // 8)}
    for (split, number), label in itertools.product(sizes.items(), ("a", "b")):
        place = folder / split / label
        place.mkdir(parents=True)
        for index in range(number // 2):
            pixels = rng.integers(0, 256, (side, side, 3), np.uint8)
            Image.fromarray(pixels).save(place / f"{index}.bmp")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=240.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps(main(torch.device(asked.device), asked.seconds), indent=1))
