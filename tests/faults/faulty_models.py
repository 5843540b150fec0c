"""timm entry points that go wrong, each in one way: a plugin (`PARETOVIT_PLUGINS=faulty_models`) for tests.

Importing this file registers them. All read [n, in_chans, s, s] and end in `num_classes` scores.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable

import torch
from timm.models import register_model
from torch import Tensor, nn


class Faulty(nn.Module):
    """A linear classifier of mean colours, whose forward does `fault` first (in training only, where asked)."""

    def __init__(
        self, fault: Callable[[Tensor], Tensor], in_chans: int, num_classes: int, only_training: bool
    ) -> None:
        super().__init__()
        self.head = nn.Linear(in_chans, num_classes)
        self._fault = fault
        self._only_training = only_training

    def forward(self, images: Tensor) -> Tensor:
        scores = self.head(images.mean((2, 3)))
        return scores if self._only_training and not self.training else self._fault(scores)


def _raise(scores: Tensor) -> Tensor:
    raise ValueError("the layer does not like its input\nand says so at length")


def _nan(scores: Tensor) -> Tensor:
    return scores * float("nan")


def _shape(scores: Tensor) -> Tensor:
    return scores[:, :, None]


def _memory(scores: Tensor) -> Tensor:
    return scores + torch.zeros(2**44, device=scores.device).sum()


def _memory_slowly(scores: Tensor) -> Tensor:
    held = []
    while True:
        held.append(torch.ones(2**20, device=scores.device))


def _segfault(scores: Tensor) -> Tensor:
    ctypes.string_at(0)
    return scores


def _hang(scores: Tensor) -> Tensor:
    time.sleep(600)
    return scores


def _hang_holding_the_gil(scores: Tensor) -> Tensor:
    ctypes.PyDLL(None).sleep(600)
    return scores


def _disk_full(scores: Tensor) -> Tensor:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "checkpoint")


def _device(scores: Tensor) -> Tensor:
    raise torch.AcceleratorError("CUDA error: device-side assert triggered")


def _exit(scores: Tensor) -> Tensor:
    os._exit(7)


def _make(fault: Callable[[Tensor], Tensor], only_training: bool = False) -> Callable[..., Faulty]:
    def build(
        pretrained: bool = False, in_chans: int = 3, num_classes: int = 1000, **kwargs: object
    ) -> Faulty:
        return Faulty(fault, in_chans, num_classes, only_training)

    return build


def _raise_in_build(pretrained: bool = False, **kwargs: object) -> Faulty:
    raise ValueError("these arguments do not go together")


BUILDERS = {
    "fault_none": _make(lambda scores: scores),
    "fault_raises": _make(_raise),
    "fault_raises_in_build": _raise_in_build,
    "fault_raises_in_training": _make(_raise, only_training=True),
    "fault_nan": _make(_nan),
    "fault_nan_in_training": _make(_nan, only_training=True),
    "fault_shape": _make(_shape),
    "fault_memory": _make(_memory),
    "fault_memory_slowly": _make(_memory_slowly),
    "fault_segfault": _make(_segfault),
    "fault_hang": _make(_hang),
    "fault_hang_holding_the_gil": _make(_hang_holding_the_gil),
    "fault_disk_full": _make(_disk_full),
    "fault_device": _make(_device),
    "fault_exit": _make(_exit),
}
for _name, _builder in BUILDERS.items():
    _builder.__name__ = _name
    _builder.__module__ = __name__
    register_model(_builder)
