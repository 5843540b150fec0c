from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor, nn

from workers.measure import memory
from workers.runtimes.torch_runtime import TorchModel

CPU = torch.device("cpu")
IMAGES = torch.zeros(1, 1, 4, 4)
KERNELS = pytest.mark.parametrize("kernel_counts", [True, False], ids=["high-water mark", "sampled"])


class Hungry(nn.Module):
    """Weights of `weight_mb` and a forward that needs `peak_mb` for a moment."""

    def __init__(self, weight_mb: float, peak_mb: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(int(weight_mb * memory.MB / 4)))
        self.peak_mb = peak_mb

    def forward(self, images: Tensor) -> Tensor:
        for _ in range(5):
            held = torch.ones(int(self.peak_mb * memory.MB / 4))
            del held
        return images


@pytest.fixture
def kernel_counts(request, monkeypatch) -> bool:
    if request.param and sys.platform != "linux":
        pytest.skip("only Linux has a high-water mark that can be reset")
    monkeypatch.setattr(memory, "_has_high_water_mark", lambda: request.param)
    return request.param


def peak(weight_mb: float, peak_mb: float) -> float:
    with torch.inference_mode():
        return memory.peak_memory_mb(TorchModel(Hungry(weight_mb, peak_mb), CPU), IMAGES, 0.2)


@pytest.mark.parametrize("kernel_counts", [True], indirect=True)
def test_weights_and_the_peak_inside_a_call_are_counted(kernel_counts):
    assert peak(8, 16) == pytest.approx(24, rel=0.05)
    assert peak(2, 5) == pytest.approx(7, rel=0.15)


@pytest.mark.parametrize("kernel_counts", [False], indirect=True)
def test_without_the_kernels_count_the_peak_is_sampled(kernel_counts):
    assert peak(8, 24) == pytest.approx(32, rel=0.1)


@KERNELS
def test_readings_do_not_depend_on_what_was_freed_before(monkeypatch, kernel_counts):
    monkeypatch.setattr(memory, "_has_high_water_mark", lambda: kernel_counts)
    first = peak(4, 10)
    junk = [torch.ones(1000, 100) for _ in range(100)]
    del junk
    assert peak(4, 10) == pytest.approx(first, rel=0.25), "the junk was 40 MB"


def test_a_network_never_weighs_less_than_its_weights():
    assert peak(0.5, 0) >= 0.5


def test_an_error_inside_the_call_leaves_no_thread_behind(monkeypatch):
    import threading

    monkeypatch.setattr(memory, "_has_high_water_mark", lambda: False)
    before = threading.active_count()

    def call() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memory._peak_during(call)
    assert threading.active_count() == before
