"""Networks that are converted and measured in onnxruntime."""

from __future__ import annotations

import pytest
import torch

from spaces.spec import ArchSpec
from workers.runtimes import exporting, torch_runtime
from workers.runtimes.onnx_runtime import OnnxModel

pytest.importorskip("onnxruntime")
CPU = torch.device("cpu")


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
    return model, OnnxModel(exporting.export(model, "fp32", torch.randn(2, 1, 8, 8), "one"), 1, CPU)


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
