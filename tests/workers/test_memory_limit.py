from __future__ import annotations

import errno
import resource
import subprocess
import sys

import pytest
import torch

from workers import memory_limit
from workers.errors import MachineError
from workers.memory_limit import is_out_of_memory, job_bytes, limited

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="RLIMIT_DATA bounds allocations on Linux only"
)


@pytest.fixture
def two_hundred_mb(monkeypatch):
    monkeypatch.setenv("PARETOVIT_JOB_MEMORY_MB", "200")


@linux_only
@pytest.mark.parametrize(
    "take",
    [
        "torch.ones(100_000_000)",
        "np.ones(50_000_000)",
        "bytearray(400_000_000)",
        "[torch.ones(1_000_000) for _ in range(100)]",
    ],
    ids=["torch", "numpy", "python", "many small ones"],
)
def test_what_goes_over_the_share_raises_an_error_that_is_known(two_hundred_mb, take):
    """In a process of its own: what this one freed earlier, its allocator may serve again without taking more."""
    script = f"""
import numpy as np, torch
from workers.memory_limit import is_out_of_memory, limited
try:
    with limited():
        {take}
except (MemoryError, RuntimeError) as error:
    print("known" if is_out_of_memory(error) else repr(error))
else:
    print("served")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.returncode) == ("known", 0), ended.stderr


@linux_only
def test_what_stays_within_the_share_is_served_and_the_limit_ends_with_the_block(two_hundred_mb):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limited() as allowance:
        assert allowance == 200_000_000
        assert torch.ones(25_000_000).sum() == 25_000_000
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert torch.ones(100_000_000).sum() == 100_000_000


def test_without_a_share_it_is_a_part_of_what_is_free(monkeypatch):
    monkeypatch.delenv("PARETOVIT_JOB_MEMORY_MB", raising=False)
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: 10_000)
    assert job_bytes() == 8_000


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("PARETOVIT_JOB_MEMORY_MB", " ")
    assert memory_limit.named_bytes() is None


@pytest.mark.parametrize("named", ["lots", "-5", "0", "1.5"])
def test_a_limit_that_is_no_number_is_refused_and_not_passed_over(named, monkeypatch):
    monkeypatch.setenv(memory_limit.VARIABLE, named)
    with pytest.raises(
        MachineError, match=f"PARETOVIT_JOB_MEMORY_MB={named}: is no whole number of megabytes above 0"
    ):
        job_bytes()


def test_a_container_bounds_what_is_free(monkeypatch):
    monkeypatch.setattr(memory_limit, "_group_bytes", lambda: [123])
    assert memory_limit.free_bytes() == 123


@pytest.mark.parametrize(
    "error, known",
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_of_memory_are_told_from_others(error, known):
    assert is_out_of_memory(error) is known
