"""Reads the images of the next batches while one is worked on, where images are kept off the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

BATCHES = 2
"""Read ahead."""


def batches(pixels: Tensor, chosen: Sequence[Tensor | slice], device: torch.device) -> Generator[Tensor]:
    """Pixels of one batch after another, on the device. pixels: on the host. chosen: places in it, by batch.

    What reading raises is raised where the batch was to come. To be closed, or read to its end.
    """
    with ThreadPoolExecutor(1, "paretovit-ahead") as reader:
        waiting: deque[Future[Tensor]] = deque()
        for places in chosen:
            waiting.append(reader.submit(_read, pixels, places, device))
            if len(waiting) > BATCHES:
                yield waiting.popleft().result().to(device, non_blocking=True)
        while waiting:
            yield waiting.popleft().result().to(device, non_blocking=True)


def _read(pixels: Tensor, places: Tensor | slice, device: torch.device) -> Tensor:
    """A copy, in pinned memory where that lets it travel beside the device's work."""
    chosen = places.to(pixels.device) if isinstance(places, Tensor) else places
    found = pixels[chosen]
    found = found.clone() if isinstance(places, slice) else found
    return found.pin_memory() if device.type == "cuda" else found
