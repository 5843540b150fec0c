"""Reads [spec, batch size] pairs as JSON, one a line; writes the peak memory in bytes that two steps of training took.

Each runs in a process that was forked off after everything was imported and used once. Linux.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import sys
from pathlib import Path

import torch
from torch.nn import functional

from spaces.spec import ArchSpec
from workers.recipe import compose
from workers.settings import RecipeSettings

TINY = {"img_size": 8, "patch_size": 2, "embed_dim": 16, "depth": 1, "num_heads": 2, "num_classes": 10}


def status_bytes(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def steps(spec: ArchSpec, batch_size: int) -> None:
    training = compose(spec, RecipeSettings(batch_size=batch_size), 10, 0, torch.device("cpu"))
    images = torch.randn(batch_size, spec.args.get("in_chans", 3), spec.image_size, spec.image_size)
    labels = torch.zeros(batch_size, dtype=torch.long)
    for _ in range(2):
        training.optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(training.model(images), labels).backward()
        torch.nn.utils.clip_grad_norm_(training.model.parameters(), 1.0, foreach=True)
        training.optimizer.step()
        training.advance()


def peak(spec: ArchSpec, batch_size: int) -> int:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        steps(ArchSpec("vit_tiny_patch16_224", TINY, 8), 2)
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        before = status_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
        steps(spec, batch_size)
        os.write(writing, str(status_bytes("VmHWM") - before).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return int(found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        data, size = json.loads(line)
        print(peak(ArchSpec.from_dict(data), size), flush=True)
