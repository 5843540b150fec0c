"""Where decoded images are kept while they are trained on: in the device's memory, or in a file read by batches."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from workers import memory_limit
from workers.data.dataset import Dataset
from workers.data.listing import Beat

SHARE_OF_DEVICE = 0.4
"""Of a device's free memory, that the images may take; the rest is the networks'."""
_ROWS_BYTES = 1 << 26


def fits(num_bytes: int, device: torch.device) -> bool:
    """Whether so many bytes of images are to be kept on a device. On a CPU, what is mapped from the cache is in memory
    as far as there is some, and is read ahead where there is not."""
    if device.type != "cuda":
        return num_bytes <= SHARE_OF_DEVICE * memory_limit.free_bytes()
    free, _ = torch.cuda.mem_get_info(device)
    return num_bytes <= SHARE_OF_DEVICE * free


def placed(pixels: np.ndarray, device: torch.device, stays: bool) -> Tensor:
    """uint8, on the device; where it does not stay there, in the host's memory or file, without a copy."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        tensor = torch.from_numpy(pixels)  # what is mapped is read only, and nobody writes to it
    return tensor.to(device) if stays else tensor


def notes(data: Dataset, stays: bool) -> dict[str, str]:
    """For whoever reads of a job: images that are read batch by batch, and a file that had to be made again."""
    found = {}
    if not stays:
        size = sum(images.pixels.nbytes for images in data.splits.values()) / 1e6
        place = data.cached or "the host's memory"
        found["images"] = (
            f"{size:,.0f} MB are read from {place} batch by batch, ahead; the device has no room for them"
        )
    if data.mended is not None:
        found["cache"] = data.mended
    return found


def moments(pixels: np.ndarray, beat: Beat = lambda: None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation a channel, exact, from histograms; a constant channel has deviation 1."""
    values = np.arange(256)
    histograms = np.zeros((pixels.shape[-1], 256), np.int64)
    rows = max(1, _ROWS_BYTES // max(1, int(np.prod(pixels.shape[1:]))))
    for start in range(0, len(pixels), rows):
        block = pixels[start : start + rows]
        for channel, counts in enumerate(histograms):
            counts += np.bincount(block[..., channel].ravel(), minlength=256)
        beat()
    mean = np.array([(h * values).sum() / h.sum() for h in histograms])
    variance = np.array(
        [(h * (values - m) ** 2).sum() / h.sum() for h, m in zip(histograms, mean, strict=True)]
    )
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)
