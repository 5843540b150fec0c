"""Which runtimes measure on which devices, in which precisions, and what they lack on this machine.

Nothing here loads torch or a runtime; `missing` looks for what a runtime needs, and asks it what it can do.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Literal

from workers import compiler
from workers.settings import Precision, Runtime

Kind = Literal["cpu", "cuda"]

FLOATS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
OFFERED: Mapping[Runtime, Mapping[Kind, tuple[Precision, ...]]] = {
    "torch": {"cpu": FLOATS, "cuda": FLOATS},
    "torch-compile": {"cpu": FLOATS, "cuda": FLOATS},
    "cuda-graph": {"cuda": FLOATS},
    "onnxruntime": {"cpu": ("fp32", "int8"), "cuda": ("fp32", "fp16")},
    "openvino": {"cpu": ("fp32", "bf16", "int8")},
    "tensorrt": {"cuda": ("fp32", "fp16", "int8")},
}
_DEVICES: Mapping[Kind, str] = {"cpu": "a CPU", "cuda": "a GPU"}
_PACKAGES: Mapping[Runtime, Sequence[str]] = {
    "onnxruntime": ("onnx", "onnxscript", "onnxruntime"),
    "openvino": ("onnx", "onnxscript", "openvino"),
    "tensorrt": ("onnx", "onnxscript", "tensorrt"),
}
_EXTRAS: Mapping[Runtime, str] = {"onnxruntime": "export", "openvino": "openvino", "tensorrt": "tensorrt"}


def refusal(runtime: Runtime, precision: Precision, kind: Kind) -> str | None:
    """Why this is measured nowhere, naming what is offered; None where it is offered."""
    on_device = OFFERED[runtime].get(kind)
    if on_device is None:
        others = ", ".join(name for name, kinds in OFFERED.items() if kind in kinds)
        return f"{runtime} does not measure on {_DEVICES[kind]}; there are {others}"
    if precision in on_device:
        return None
    others = ", ".join(
        name for name, kinds in OFFERED.items() if precision in kinds.get(kind, ()) and name != runtime
    )
    also = f"; {precision} is offered by {others}" if others else ""
    return f"{runtime} offers {', '.join(on_device)} on {_DEVICES[kind]}, not {precision}{also}"


def missing(runtime: Runtime, precision: Precision, kind: Kind) -> str | None:
    """What this machine lacks for an offered combination, with the remedy; None where it lacks nothing."""
    lacking = [name for name in _PACKAGES.get(runtime, ()) if importlib.util.find_spec(name) is None]
    if precision == "int8" and importlib.util.find_spec("onnxruntime") is None:
        lacking = list(dict.fromkeys([*lacking, "onnxruntime"]))
    if lacking:
        extra = _EXTRAS[runtime]
        return f"{runtime} needs {', '.join(lacking)}: pip install 'paretovit[{extra}]'"
    if runtime == "torch-compile":
        return _without_compiler(kind)
    if runtime == "onnxruntime" and kind == "cuda":
        return _without_cuda_provider()
    if runtime == "openvino" and precision == "bf16":
        return _without_bf16()
    return None


def _without_compiler(kind: Kind) -> str | None:
    lacking = compiler.missing(kind == "cuda")
    return lacking and f"torch-compile cannot work on {_DEVICES[kind]} here: {lacking}"


def _without_cuda_provider() -> str | None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        return None
    return (
        "this onnxruntime has no CUDA provider; install onnxruntime-gpu in its place, or set cost.device: cpu"
    )


def _without_bf16() -> str | None:
    import openvino

    if "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        return None
    return "openvino computes in bf16 only on CPUs with instructions for it (AVX512-BF16, AMX), and this one has none"
