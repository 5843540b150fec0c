"""Every runtime and precision that can be had here: it answers as eager torch, and is measured under its own name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spaces.spec import ArchSpec
from workers import compiler
from workers.device import Device, resolve
from workers.errors import CandidateError, DeviceError
from workers.measure import inputs, protocol
from workers.runtimes import loading, offered, torch_runtime
from workers.settings import CostSettings

CPU = resolve("cpu", 1)
GPU = Device("cuda:0", "gpu-0", "a GPU", 1)
COMBINATIONS = [
    (runtime, precision)
    for runtime, kinds in offered.OFFERED.items()
    for precision in kinds.get("cpu", ())
    if runtime != "torch-compile" or precision == "fp32"  # each takes the compiler a while
]


def vit(side: int = 8) -> ArchSpec:
    args = {
        "img_size": side,
        "patch_size": 2,
        "embed_dim": 32,
        "depth": 1,
        "num_heads": 2,
        "in_chans": 1,
        "num_classes": 10,
    }
    return ArchSpec("vit_tiny_patch16_224", args, side)


def cost(runtime: str, precision: str, **more) -> CostSettings:
    return CostSettings(device="cpu", max_seconds=0.1, runtime=runtime, precision=precision, **more)  # type: ignore[arg-type]


def pixels() -> torch.Tensor:
    images = np.random.default_rng(0).integers(0, 255, (64, 8, 8, 1), np.uint8)
    return inputs.prepare(vit(), images)


def or_skip(runtime: str, precision: str) -> None:
    if lacking := offered.missing(runtime, precision, "cpu"):  # type: ignore[arg-type]
        pytest.skip(lacking)


@pytest.mark.parametrize(("runtime", "precision"), COMBINATIONS)
def test_what_is_offered_on_a_cpu_is_measured_under_its_name(runtime, precision):
    or_skip(runtime, precision)
    found = protocol.measure(vit(), cost(runtime, precision))
    assert (found.runtime, found.precision) == (runtime, precision)
    assert 0 < found.latency_ms_low <= found.latency_ms <= found.latency_ms_high
    assert min(found.throughput, found.peak_memory_mb, found.model_mb, found.build_seconds) > 0
    if runtime in ("onnxruntime", "openvino"):
        assert runtime in found.software


@pytest.mark.parametrize(
    ("runtime", "precision", "share"), [("torch", "fp16", 0.5), ("onnxruntime", "int8", 0.25)]
)
def test_smaller_weights_are_smaller(runtime, precision, share):
    or_skip(runtime, precision)
    eager = torch_runtime.build(vit(), torch.device("cpu"))
    loaded = loading.load(vit(), CPU, cost(runtime, precision), pixels())
    assert share * 0.9 < loaded.num_bytes() / eager.num_bytes() < share * 1.9


@pytest.mark.parametrize(
    ("runtime", "precision"), [("torch", "fp32"), ("torch", "bf16"), ("onnxruntime", "int8")]
)
def test_other_weights_are_noticed_in_every_precision(runtime, precision, monkeypatch):
    """The runtime gets another network than the one that it is compared with."""
    or_skip(runtime, precision)
    other = torch_runtime.build(vit(), torch.device("cpu"), seed=1)
    in_runtime = loading._in_runtime
    monkeypatch.setattr(
        loading, "_in_runtime", lambda _built, _name, *rest: in_runtime(other, "other", *rest)
    )
    settings = cost("torch-compile" if precision == "fp32" else runtime, precision)
    if precision == "fp32":
        or_skip("torch-compile", "fp32")
    with pytest.raises(CandidateError, match=f"scores in {precision} differ from eager torch's in fp32 by"):
        loading.load(vit(), CPU, settings, pixels())


@pytest.mark.parametrize("batch", [1, 3])
def test_openvino_answers_at_each_batch_size_as_torch_does(batch):
    or_skip("openvino", "fp32")
    loaded = loading.load(vit(), CPU, cost("openvino", "fp32", batch_size=batch), pixels())
    images = torch.randn(batch, 1, 8, 8)
    eager = torch_runtime.build(vit(), torch.device("cpu"))
    with torch.inference_mode():
        assert torch.allclose(loaded.call(images)(), eager.call(images)(), atol=1e-4)
        assert torch.equal(loaded.duplicate().call(images)(), loaded.call(images)())


def test_a_compiled_network_stays_compiled_after_many_others_of_its_family(monkeypatch):
    """Dynamo would go back to eager without a word after eight networks that share a forward function."""
    resets, compiled = [], []
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append(None))
    monkeypatch.setattr(torch, "compile", lambda network, **options: compiled.append(options) or network)
    monkeypatch.setattr(compiler, "missing", lambda _: None)
    for _ in range(3):
        loading.load(vit(), CPU, cost("torch-compile", "fp32"), pixels())
    assert len(resets) == 3
    assert all(options["fullgraph"] and options["dynamic"] is False for options in compiled)


def test_throughput_of_what_is_compiled_for_one_batch_is_that_of_the_batch(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda network, **_: network)
    monkeypatch.setattr(compiler, "missing", lambda _: None)
    found = protocol.measure(vit(), cost("torch-compile", "fp32", batch_size=2))
    assert found.throughput_batch_size == 2


@pytest.mark.parametrize(
    ("runtime", "precision", "device", "message"),
    [
        (
            "cuda-graph",
            "fp32",
            CPU,
            "cuda-graph does not measure on a CPU; there are torch, torch-compile, onnx",
        ),
        ("tensorrt", "fp16", CPU, "tensorrt does not measure on a CPU"),
        (
            "torch",
            "int8",
            CPU,
            "torch offers fp32, bf16, fp16 on a CPU, not int8; int8 is offered by onnxruntime",
        ),
        ("onnxruntime", "bf16", CPU, "onnxruntime offers fp32, int8 on a CPU, not bf16"),
        (
            "openvino",
            "fp32",
            GPU,
            "openvino does not measure on a GPU; there are torch, torch-compile, cuda-graph",
        ),
        ("onnxruntime", "int8", GPU, "onnxruntime offers fp32, fp16 on a GPU, not int8"),
    ],
)
def test_what_is_not_offered_is_refused_by_name_before_anything_is_built(
    runtime, precision, device, message, monkeypatch
):
    monkeypatch.setattr(torch_runtime, "build", lambda *_: pytest.fail("built"))
    with pytest.raises(DeviceError) as caught:
        loading.load(vit(), device, cost(runtime, precision), pixels())
    assert str(caught.value).startswith(message)


def test_without_a_compiler_torch_compile_is_refused(monkeypatch):
    monkeypatch.setattr(compiler, "missing", lambda _: "no C++ compiler is here (g++)")
    with pytest.raises(DeviceError, match=r"torch-compile cannot work on a CPU here: no C\+\+ compiler"):
        loading.load(vit(), CPU, cost("torch-compile", "fp32"), pixels())


@pytest.mark.parametrize(
    ("runtime", "package", "extra"),
    [("openvino", "openvino", "openvino"), ("tensorrt", "tensorrt", "tensorrt")],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(runtime, package, extra, monkeypatch):
    find = offered.importlib.util.find_spec
    monkeypatch.setattr(
        offered.importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    kind = "cpu" if runtime == "openvino" else "cuda"
    told = offered.missing(runtime, "fp32", kind)
    assert told == f"{runtime} needs {package}: pip install 'paretovit[{extra}]'"
