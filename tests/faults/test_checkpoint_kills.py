"""A process that is killed while it writes a checkpoint leaves the old one or the new one."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spaces.spec import ArchSpec
from workers import checkpoint
from workers.job import Job, Kind

HERE = Path(__file__).parent
ARGS = {"img_size": 8, "patch_size": 2, "embed_dim": 128, "depth": 4, "num_heads": 2}
SPEC = ArchSpec("vit_base_patch16_224", ARGS | {"in_chans": 1, "num_classes": 10}, 8)


@pytest.mark.parametrize("kills", [8, pytest.param(50, marks=pytest.mark.chaos)])
def test_after_kills_in_the_midst_of_writing_the_old_or_the_new_checkpoint_loads(
    make_job: Callable[..., Job], kills: int
) -> None:
    job = dataclasses.replace(make_job("fault_none", Kind.TRAIN), spec=SPEC)
    command = [sys.executable, str(HERE / "writing.py"), str(kills), job.to_json()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(found) == kills
    for one in found:
        assert one["found"] in (one["returned"], one["returned"] + 1)
    partial = [name for one in found for name in one["partial"]]
    assert partial, "no kill came while a file was being written"
    assert [name for name in partial if not checkpoint.NAMES.fullmatch(f"{job.candidate}/{name}")] == []
