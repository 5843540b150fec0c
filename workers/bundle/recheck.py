"""Runs an exported model again and says how far its answers are from the stored ones. Started by `verify`:

    python -I recheck.py FOLDER MAX_BYTES MAX_SECONDS < MODELING

MODELING: the text of a `modeling.py`, this program's own. FOLDER: of the export, only read. MAX_BYTES (on Linux),
MAX_SECONDS: what building and running the model may take; past them an error, or an end. Prints one JSON object:
`differences` by file, the largest absolute difference of any score, null for an ONNX model where onnxruntime is not
installed; `largest`, the largest absolute score that is stored; `num_images`; `versions`; `imported`, the packages in
use. Where a file cannot be used, the last line of standard error begins with its name.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import signal
import sys
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import timm
import torch
from safetensors.torch import load_file

BATCHES = (1, 3)
SPEC, PREPROCESSING = "spec.json", "preprocessing.json"
WEIGHTS, SAMPLE, ONNX = "model.safetensors", "sample.safetensors", "model.onnx"


class Using:
    """Whatever is raised in the block is the fault of `name`, says the last line of standard error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            text = " ".join(str(error).split()).removeprefix(f"{self._name}: ")
            raise SystemExit(f"{self._name}: {type(error).__name__}: {text}") from error


def main(folder: str) -> None:
    modeling = _module(sys.stdin.buffer.read())
    pixels, stored = _sample(Path(folder, SAMPLE))
    with Using(SPEC):
        modeling.build(folder)
    with Using(WEIGHTS):  # built a second time: `load` is what users call, and fails for both files
        network = modeling.load(folder)
    with Using(PREPROCESSING):
        images = modeling.preprocess(pixels, folder)
    with Using(f"{SPEC} with {PREPROCESSING}"), torch.inference_mode():
        scores = network(images)
        differences: dict[str, float | None] = {"modeling.py": _difference(scores, stored)}
    with Using(PREPROCESSING):
        _check_names(modeling.class_names(folder), scores.shape[-1])
    onnx = Path(folder, ONNX)
    if onnx.exists():
        with Using(ONNX):
            differences[ONNX] = _onnx_difference(onnx, images, stored)
    found: dict[str, Any] = {
        "differences": differences,
        "largest": float(stored.abs().max()),
        "num_images": len(stored),
        "versions": {"torch": str(torch.__version__), "timm": timm.__version__},
        "imported": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    sys.stdout.write(json.dumps(found))


def _module(text: bytes) -> ModuleType:
    module = ModuleType("modeling")
    module.__file__ = "modeling.py"
    exec(compile(text, "modeling.py", "exec", dont_inherit=True), module.__dict__)
    return module


def _sample(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """uint8 [n, side, side, channels] and floats [n, classes]."""
    with Using(SAMPLE):
        tensors = load_file(path)
        pixels, scores = tensors["pixels"], tensors["scores"]
        if pixels.dtype != torch.uint8 or pixels.ndim != 4 or not pixels.numel():
            raise TypeError(f"pixels are {pixels.dtype} {list(pixels.shape)}")
        if not scores.is_floating_point() or scores.ndim != 2 or not scores.numel():
            raise TypeError(f"scores are {scores.dtype} {list(scores.shape)}")
        if len(scores) != len(pixels):
            raise ValueError(f"{len(pixels)} images, but scores of {len(scores)}")
        return pixels, scores


def _check_names(names: Any, num_classes: int) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("class_names is no list of names")
    if len(names) != num_classes:
        raise ValueError(f"{len(names)} class_names, but {num_classes} scores an image")


def _onnx_difference(path: Path, images: torch.Tensor, stored: torch.Tensor) -> float | None:
    """The largest over batches of 1, 3 and all images."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    differences = []
    for size in {*BATCHES, len(images)}:
        chosen = torch.arange(size) % len(images)
        (scores,) = session.run(None, {name: images[chosen].numpy()})
        differences.append(_difference(torch.from_numpy(scores), stored[chosen]))
    return max(differences)


def _difference(scores: torch.Tensor, stored: torch.Tensor) -> float:
    """Infinite where shapes differ or a score is not finite."""
    if scores.shape != stored.shape or not bool(torch.isfinite(scores).all()):
        return float("inf")
    return float((scores - stored).abs().max())


def limit(max_bytes: int, max_seconds: float) -> None:
    """So much memory more than is in use now, as `workers.memory_limit` counts it; and so much time, which also ends
    us where `verify` was killed."""
    signal.setitimer(signal.ITIMER_REAL, max_seconds)
    if sys.platform == "linux":
        in_use = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = in_use + max_bytes
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if soft == resource.RLIM_INFINITY else min(wanted, soft), hard)
        )


if __name__ == "__main__":
    limit(int(sys.argv[2]), float(sys.argv[3]))
    main(sys.argv[1])
