from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from workers.data import dataset, decoded
from workers.settings import DataSettings

Make = Callable[..., Path]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PARETOVIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def settings(image_folder: Make) -> DataSettings:
    return DataSettings("folder", str(image_folder()), image_size=8)


def stored(cache: Path) -> Path:
    (path,) = cache.glob("decoded/*.pixels")
    return path


def count_decoding(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Images decoded, call by call."""
    from workers.data import pictures

    counts: list[int] = []
    plain = pictures._decode

    def decode(found, indices, size, beat):
        counts.append(len(indices))
        return plain(found, indices, size, beat)

    monkeypatch.setattr(pictures, "_decode", decode)
    return counts


def same(first: dataset.Dataset, second: dataset.Dataset) -> bool:
    return all(
        np.array_equal(first.splits[name].pixels, second.splits[name].pixels)
        and np.array_equal(first.splits[name].labels, second.splits[name].labels)
        for name in first.splits
    )


def test_images_are_decoded_once_and_come_from_the_cache_bit_by_bit(cache, settings, monkeypatch) -> None:
    counts = count_decoding(monkeypatch)
    monkeypatch.setenv("PARETOVIT_CACHE", "off")
    plain = dataset.load(settings)
    assert (plain.cached, sum(counts)) == (None, 20)
    monkeypatch.setenv("PARETOVIT_CACHE", str(cache))
    first, second = dataset.load(settings), dataset.load(settings)
    assert sum(counts) == 40
    assert first.cached == second.cached == stored(cache)
    assert same(plain, first)
    assert same(plain, second)


def test_another_image_size_is_another_file(cache, settings) -> None:
    dataset.load(settings)
    dataset.load(DataSettings("folder", settings.path, image_size=12))
    assert len(list(cache.glob("decoded/*.pixels"))) == 2


def test_images_that_need_no_work_are_not_cached(cache) -> None:
    assert not dataset.load(DataSettings("digits")).cached
    assert not (cache / "decoded").exists()


def spoil_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_other_images(path: Path) -> None:
    other = path.with_name("other.pixels")
    indices = np.arange(3)
    decode = lambda indices, beat: np.zeros((len(indices), 8, 8, 3), np.uint8)  # noqa: E731
    assert decoded.mapped(other, (3, 8, 8, 3), indices, decode, lambda: None, whole=True)
    os.replace(other, path)


@pytest.mark.parametrize("spoil", [spoil_a_byte, cut_off, empty, of_other_images])
def test_a_damaged_file_is_noticed_and_made_again(cache, settings, spoil) -> None:
    first = dataset.load(settings)
    pixels = {name: images.pixels.copy() for name, images in first.splits.items()}
    del first
    good = stored(cache).read_bytes()
    spoil(stored(cache))
    again = dataset.load(settings)
    assert again.mended is not None
    assert "made again" in again.mended
    assert all(np.array_equal(again.splits[name].pixels, pixels[name]) for name in pixels)
    assert stored(cache).read_bytes() == good
    assert dataset.load(settings).mended is None


def test_processes_that_load_at_once_decode_once_and_see_the_same(cache, settings, start) -> None:
    code = """
        import hashlib, sys
        from workers.data import dataset
        from workers.data import pictures
        from workers.settings import DataSettings
        plain, counts = pictures._decode, []
        pictures._decode = lambda found, indices, *rest: counts.append(len(indices)) or plain(found, indices, *rest)
        sys.stdin.readline()
        data = dataset.load(DataSettings("folder", sys.argv[1], image_size=8))
        digest = hashlib.sha256(b"".join(images.pixels.tobytes() for images in data.splits.values()))
        print(sum(counts), digest.hexdigest())
    """
    running = [start(code, settings.path) for _ in range(3)]
    answers = [process.communicate("go\n")[0].split() for process in running]
    assert sorted(int(count) for count, _ in answers) == [0, 0, 20]
    assert len({digest for _, digest in answers}) == 1
    assert len(list(cache.glob("decoded/*.pixels"))) == 1
    assert not list(cache.rglob("*.part"))


def test_without_room_images_stay_in_memory(cache, settings, monkeypatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE_GB", "0.000001")
    data = dataset.load(settings)
    assert not data.cached
    assert "PARETOVIT_CACHE_GB" in (data.uncached or "")
    assert not list(cache.glob("decoded/*.pixels"))
    assert len(data.splits["train"].pixels) == 12


def test_a_full_disk_is_named_as_why_images_stay_in_memory(cache, settings, monkeypatch) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("workers.data.cache.replacing", full)
    data = dataset.load(settings)
    assert (data.cached, data.uncached) == (None, "the cache cannot be written (No space left on device)")
    monkeypatch.undo()


def test_images_that_fit_nowhere_are_refused_with_what_they_take(settings, monkeypatch) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE", "off")
    monkeypatch.setattr("workers.memory_limit.job_bytes", lambda: 1000)
    with pytest.raises(dataset.DataError, match=r"data\.image_size: 8: the decoded images take 0\.0 GB"):
        dataset.load(settings)
