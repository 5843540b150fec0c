"""Writes a folder that measures networks on a machine with numpy and onnxruntime alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spaces.spec import ArchSpec
from workers.bundle.folder import new_folder
from workers.elsewhere import PROTOCOL, script
from workers.measure import inputs
from workers.runtimes import agreement, onnx_runtime, torch_runtime
from workers.settings import CostSettings

MODULES = (
    "elsewhere/script.py",
    "elsewhere/timing.py",
    "elsewhere/machine.py",
    "measure/statistics.py",
    "measure/malloc.py",
    "measure/cpu.py",
)
"""Below `workers`: what is carried. They import the standard library, numpy, onnxruntime and each other."""
PACKAGE = "paretovit_measure"
NUM_IMAGES = 16
_LAUNCHER = f'''"""Run me: python measure.py --help"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from {PACKAGE}.script import main

sys.exit(main(Path(__file__).parent))
'''
_OURS = re.compile(r"^from workers\.(?:elsewhere|measure)(\.\w+)? import", re.MULTILINE)
_README = """# Networks to be measured here

    pip install numpy onnxruntime
    python measure.py --label NAME

measures the networks of this folder on this machine's CPU and writes results.json. Leave the machine alone meanwhile.
Bring results.json back and read it in with `paretovit measure --import results.json`. manifest.json says what the
folder holds; the networks' weights are random, as the time that they take does not depend on them.
"""


@dataclass(frozen=True)
class Entry:
    """A network to carry. name: as it is shown. search, candidate: where it comes from, if from a search."""

    name: str
    spec: ArchSpec
    search: str | None = None
    candidate: int | None = None


def write(
    target: Path,
    entries: Sequence[Entry],
    cost: CostSettings,
    batch_sizes: Sequence[int],
    images: np.ndarray | None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Makes the folder; returns its manifest. cost: threads, max_seconds and relative_error are used.

    images: uint8 [n, height, width, channels], real ones; None for noise. say: told of each network.
    Raises ExportError for a target that cannot be made, ValueError, naming it, for a network that cannot be converted,
    and what building raises.
    """
    with new_folder(target) as folder:
        files = [_carry(folder, module) for module in MODULES]
        (folder / PACKAGE / "__init__.py").write_text("")
        (folder / "measure.py").write_text(_LAUNCHER)
        (folder / "README.md").write_text(_README)
        files += [_file(folder, path) for path in (f"{PACKAGE}/__init__.py", "measure.py")]
        models = []
        for number, entry in enumerate(entries, start=1):
            say(f"{entry.name}: converting")
            models.append(_model(folder, f"m{number}", entry, images))
        carried = sorted({model[key] for model in models for key in ("file", "images")})
        content: dict[str, Any] = {
            "format": script.FORMAT,
            "protocol": PROTOCOL,
            "conditions": {
                "runtime": "onnxruntime",
                "precision": "fp32",
                "threads": cost.threads,
                "batch_sizes": list(batch_sizes),
                "max_seconds": cost.max_seconds,
                "relative_error": cost.relative_error,
            },
            "real_images": images is not None,
            "models": models,
            "files": [*files, *(_file(folder, path) for path in carried)],
        }
        content["sha256"] = script.content_digest(content)
        (folder / script.MANIFEST).write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    return content


def _carry(folder: Path, module: str) -> dict[str, Any]:
    """Copies a module of ours, whose imports of ours become those of its new neighbours."""
    source = (Path(__file__).parents[1] / module).read_text()
    path = f"{PACKAGE}/{Path(module).name}"
    (folder / PACKAGE).mkdir(exist_ok=True)
    (folder / path).write_text(_OURS.sub(lambda found: f"from .{(found[1] or '.')[1:]} import", source))
    return _file(folder, path)


def _model(folder: Path, name: str, entry: Entry, images: np.ndarray | None) -> dict[str, Any]:
    spec = entry.spec
    path = folder / f"{name}.onnx"
    try:
        model = torch_runtime.build(spec, torch.device("cpu"))
        pixels = inputs.prepare(spec, images)[:NUM_IMAGES]
        with torch.no_grad():
            onnx_runtime.convert(model.network, pixels, path)
            _compare(model, pixels[:4], path)
    except (ValueError, TypeError, RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{entry.name}: {reason}") from error
    shown = f"images-{pixels.shape[1]}x{spec.image_size}.npy"
    if not (folder / shown).exists():
        np.save(folder / shown, pixels.numpy(), allow_pickle=False)
    return {
        "id": name,
        "name": entry.name,
        "search": entry.search,
        "candidate": entry.candidate,
        "spec": spec.to_dict(),
        "digest": spec.digest,
        "file": path.name,
        "images": shown,
        "model_mb": model.num_bytes() / 1e6,
    }


def _compare(model: torch_runtime.TorchModel, pixels: torch.Tensor, path: Path) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=[onnx_runtime.PROVIDER])
    (scores,) = session.run([onnx_runtime.OUTPUT], {onnx_runtime.INPUT: pixels.numpy()})
    agreement.check(model.call(pixels)(), torch.from_numpy(scores), "onnxruntime", "fp32")


def _file(folder: Path, path: str) -> dict[str, Any]:
    content = (folder / path).read_bytes()
    return {"path": path, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
