"""Where images are kept, and that they train alike wherever that is."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from workers.data import ahead, placing
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


DEVICES = [CPU] + ([torch.device("cuda")] if torch.cuda.is_available() else [])


def epoch(data: DeviceData, augment: Augment) -> list[torch.Tensor]:
    batches = [*training_batches(data, 16, augment, 3), *evaluation_batches(data, "val", 16)]
    return [part for batch in batches for part in batch]


def read(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> DeviceData:
    """Images that have no room on the device."""
    monkeypatch.setattr(placing, "SHARE_OF_DEVICE", 0.0)
    data = to_device(images(), device)
    assert all(split.is_read for split in data.splits.values())
    assert all(split.pixels.device == CPU for split in data.splits.values())
    return data


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("augment", [Augment(), Augment(max_shift=2, flip=True), Augment(repeats=3)])
def test_images_that_are_read_batch_by_batch_train_as_resident_ones_do(
    augment: Augment, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident = epoch(to_device(images(), device), augment)
    streamed = epoch(read(device, monkeypatch), augment)
    assert len(resident) == len(streamed)
    assert all(torch.equal(one, other) for one, other in zip(resident, streamed, strict=True))


def test_the_next_batches_are_read_while_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Semaphore(0)

    def noted(*arguments: object) -> torch.Tensor:
        begun.release()
        return whole(*arguments)  # pyright: ignore[reportArgumentType]

    whole = ahead._read
    monkeypatch.setattr(ahead, "_read", noted)
    batches = training_batches(read(CPU, monkeypatch), 10, Augment(), 0)
    next(batches)
    assert all(begun.acquire(timeout=10) for _ in range(1 + ahead.BATCHES))
    assert not begun.acquire(blocking=False)
    batches.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("paretovit-ahead")]


def test_what_reading_raises_is_raised_where_the_batch_was_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    data = read(CPU, monkeypatch)
    monkeypatch.setattr(ahead, "_read", lambda *_: (_ for _ in ()).throw(OSError("the file is gone")))
    with pytest.raises(OSError, match="the file is gone"):
        next(training_batches(data, 10, Augment(), 0))
