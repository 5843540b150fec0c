from __future__ import annotations

import statistics
from pathlib import Path

import pytest
import torch

from workers.measure import cache, timing

CPU = torch.device("cpu")


def made(folder: Path, *caches: tuple[str, str, str]) -> Path:
    for place, (level, kind, size) in enumerate(caches):
        one = folder / f"index{place}"
        one.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (one / name).write_text(f"{text}\n")
    return folder


@pytest.mark.skipif(not cache._CACHES.is_dir(), reason="this system does not tell")
def test_the_last_level_is_the_highest_that_the_system_tells(tmp_path):
    found = made(
        tmp_path,
        ("1", "Data", "32K"),
        ("1", "Instruction", "48K"),
        ("3", "Unified", "33M"),
        ("2", "Unified", "1M"),
    )
    assert cache._of_cpu(found) == 33 * 1024**2
    assert cache._of_cpu(tmp_path / "none") == cache.ASSUMED_BYTES
    assert cache.last_level_bytes(CPU) >= 1024**2


def test_the_call_reads_other_images_each_time():
    others = torch.arange(6.0).reshape(6, 1, 1, 1)
    images = others[:2].clone()
    empty = cache.emptying(CPU, images, others)
    seen = []
    for _ in range(3):
        empty()
        seen.append(images.flatten().tolist())
    assert seen == [[2.0, 3.0], [4.0, 5.0], [0.0, 1.0]]


def test_reading_what_was_in_the_cache_takes_longer_once_it_is_emptied():
    """A mebibyte, which any cache holds: the emptied one is several times slower; half as slow again is asked for."""
    weights = torch.ones(1024**2 // 4)
    images = torch.zeros(1, 1, 1, 1)
    empty = cache.emptying(CPU, images, torch.zeros(4, 1, 1, 1))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        hot, cold = [], []
        for _ in range(40):
            cold.append(timing.time_call_ms(weights.sum, empty))
            hot.append(timing.time_call_ms(weights.sum))
    finally:
        torch.set_num_threads(before)
    assert statistics.median(cold) > 1.5 * statistics.median(hot)
