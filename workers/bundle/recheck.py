"""Runs an exported model again and says how far its answers are from the stored ones. Started by `verify`:

    python -I recheck.py MODELING FOLDER

MODELING: a `modeling.py` of this program's own. FOLDER: of the export, only read. Prints one JSON object: `differences`
by file, the largest absolute difference of any score, null for an ONNX model where onnxruntime is not installed;
`largest`, the largest absolute score that is stored; `num_images`; `versions`; `imported`, the packages in use.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import timm
import torch
from safetensors.torch import load_file

BATCHES = (1, 3)


def main(modeling_path: str, folder: str) -> None:
    modeling = _imported(modeling_path)
    sample = load_file(Path(folder, "sample.safetensors"))
    stored = sample["scores"]
    network = modeling.load(folder)
    images = modeling.preprocess(sample["pixels"], folder)
    with torch.inference_mode():
        differences: dict[str, float | None] = {"modeling.py": _difference(network(images), stored)}
    onnx = Path(folder, "model.onnx")
    if onnx.exists():
        differences["model.onnx"] = _onnx_difference(onnx, images, stored)
    found: dict[str, Any] = {
        "differences": differences,
        "largest": float(stored.abs().max()),
        "num_images": len(stored),
        "versions": {"torch": str(torch.__version__), "timm": timm.__version__},
        "imported": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    sys.stdout.write(json.dumps(found))


def _imported(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("modeling", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


if __name__ == "__main__":
    main(*sys.argv[1:])
