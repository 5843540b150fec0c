"""Networks that are converted and measured in onnxruntime."""

from __future__ import annotations

import pytest
import torch

from spaces.spec import ArchSpec
from workers.device import Device
from workers.errors import CandidateError, DeviceError
from workers.measure import protocol
from workers.runtimes import onnx_runtime, torch_runtime
from workers.settings import CostSettings

pytest.importorskip("onnxruntime")
CPU = torch.device("cpu")
ONNX = CostSettings(device="cpu", max_seconds=0.1, runtime="onnxruntime")


def vit(depth: int = 1) -> ArchSpec:
    args = {
        "img_size": 8,
        "patch_size": 2,
        "embed_dim": 32,
        "depth": depth,
        "num_heads": 2,
        "in_chans": 1,
        "num_classes": 10,
    }
    return ArchSpec("vit_tiny_patch16_224", args, 8)


@pytest.fixture(scope="module")
def pair():
    model = torch_runtime.build(vit(), CPU)
    return model, onnx_runtime.load(model, torch.randn(2, 1, 8, 8), threads=1)


@pytest.mark.parametrize("size", [1, 3, 64])
def test_it_answers_as_torch_for_any_number_of_images(pair, size):
    model, loaded = pair
    images = torch.randn(size, 1, 8, 8)
    with torch.inference_mode():
        assert torch.allclose(model.call(images)(), loaded.call(images)(), atol=1e-4)


def test_it_weighs_what_the_network_weighs_and_a_second_session_answers_the_same(pair):
    model, loaded = pair
    images = torch.randn(2, 1, 8, 8)
    assert loaded.num_bytes() == model.num_bytes()
    assert torch.equal(loaded.duplicate().call(images)(), loaded.call(images)())


def test_scores_that_are_not_those_of_torch_do_not_count(monkeypatch):
    other = torch_runtime.build(vit(), CPU, seed=1).network
    convert = onnx_runtime.convert
    monkeypatch.setattr(onnx_runtime, "convert", lambda _, images, path: convert(other, images, path))
    with pytest.raises(CandidateError, match="onnxruntime's scores differ from torch's by"):
        onnx_runtime.load(torch_runtime.build(vit(), CPU), torch.randn(2, 1, 8, 8), threads=1)


def test_a_measurement_in_it_says_so_and_has_every_figure():
    found = protocol.measure(vit(), ONNX)
    assert (found.runtime, found.precision, found.threads) == ("onnxruntime", "fp32", 1)
    assert 0 < found.latency_ms_low <= found.latency_ms <= found.latency_ms_high
    assert min(found.throughput, found.peak_memory_mb, found.model_mb, found.build_seconds) > 0


def test_a_gpu_is_refused_before_anything_is_converted(monkeypatch):
    gpu = Device("cuda:0", "gpu-0", "a GPU", 1)
    monkeypatch.setattr(protocol.torch_runtime, "build", lambda *_: None)
    with pytest.raises(DeviceError, match="runtime onnxruntime measures on the CPU, not on a GPU"):
        protocol._load(vit(), gpu, ONNX, torch.zeros(2, 1, 8, 8))
