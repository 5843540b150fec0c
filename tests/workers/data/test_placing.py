from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from workers.data import placing
from workers.data.batches import Augment, DeviceData, evaluation_batches, to_device, training_batches
from workers.data.dataset import Dataset, Images

CPU = torch.device("cpu")


def images(count: int = 50) -> Dataset:
    pixels = np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), np.uint8)
    split = Images(pixels, np.arange(count) % 5)
    return Dataset(8, 3, tuple("abcde"), dict.fromkeys(("train", "val", "test"), split), "d")


def test_moments_do_not_depend_on_the_blocks_that_they_are_taken_in(monkeypatch) -> None:
    pixels = images().splits["train"].pixels
    whole = placing.moments(pixels)
    monkeypatch.setattr(placing, "_ROWS_BYTES", 8 * 8 * 3 * 7)
    beats: list[None] = []
    parts = placing.moments(pixels, lambda: beats.append(None))
    assert len(beats) == 8
    assert np.array_equal(whole, parts)
    assert np.allclose(whole[0], pixels.mean((0, 1, 2)))
    assert np.allclose(whole[1], pixels.std((0, 1, 2)))


def test_mapped_images_come_to_the_cpu_without_a_copy_and_without_a_warning(tmp_path) -> None:
    pixels = images().splits["train"].pixels
    pixels.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.uint8, "r", shape=pixels.shape)
    tensor = placing.placed(mapped, CPU, stays=True)
    assert tensor.data_ptr() == mapped.ctypes.data
    assert torch.equal(tensor, torch.from_numpy(pixels))


def test_images_that_are_read_batch_by_batch_and_mended_files_are_noted() -> None:
    assert placing.notes(images(), stays=True) == {}
    found = placing.notes(replace(images(), mended="x.pixels: cut off; made again"), stays=False)
    assert found["images"].startswith("0 MB are read from the host's memory batch by batch")
    assert found["cache"] == "x.pixels: cut off; made again"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("augment", [Augment(), Augment(max_shift=2, flip=True)])
def test_streamed_images_train_as_resident_ones_do(augment: Augment, monkeypatch) -> None:
    def epoch(data: DeviceData) -> list[torch.Tensor]:
        batches = [*training_batches(data, 16, augment, 3), *evaluation_batches(data, "val", 16)]
        return [part for batch in batches for part in batch]

    device = torch.device("cuda")
    resident = to_device(images(), device)
    monkeypatch.setattr(placing, "SHARE_OF_DEVICE", 0.0)
    streamed = to_device(images(), device)
    assert (resident.splits["train"].pixels.is_cuda, streamed.splits["train"].pixels.is_cuda) == (True, False)
    assert all(torch.equal(*pair) for pair in zip(epoch(resident), epoch(streamed), strict=True))
