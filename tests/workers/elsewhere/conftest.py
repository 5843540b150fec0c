from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spaces.spec import ArchSpec
from workers.elsewhere import carrying
from workers.elsewhere.carrying import Entry
from workers.settings import CostSettings

SPEC = ArchSpec(
    "vit_base_patch16_224",
    {
        "img_size": 8,
        "patch_size": 2,
        "embed_dim": 24,
        "depth": 2,
        "num_heads": 2,
        "in_chans": 1,
        "num_classes": 10,
    },
    8,
)
HOOK = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "onnxruntime", "paretovit_measure"):
            raise ImportError(f"{name} is not on this machine")
        return None

sys.meta_path.insert(0, Refusing())
"""


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two networks, one of a search."""
    folder = tmp_path_factory.mktemp("carried") / "bundle"
    entries = [
        Entry("small", SPEC),
        Entry("#3 of flowers", ArchSpec(SPEC.model, {**SPEC.args, "depth": 4}, 8), "flowers", 3),
    ]
    carrying.write(folder, entries, CostSettings(device="cpu", max_seconds=0.1), [1, 2], None)
    return folder


@pytest.fixture
def bundle(carried: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(carried, tmp_path / "bundle")


Script = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def on_the_other_machine(tmp_path_factory: pytest.TempPathFactory) -> Script:
    """Runs a folder's script where nothing but numpy, onnxruntime and the standard library can be imported."""
    hook = tmp_path_factory.mktemp("hook")
    (hook / "sitecustomize.py").write_text(HOOK)
    environment = {**os.environ, "PYTHONPATH": str(hook), "OMP_NUM_THREADS": "1"}

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(folder / "measure.py"), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=hook, timeout=300, check=False
        )

    return run


@pytest.fixture(scope="session")
def measured(carried: Path, on_the_other_machine: Script, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the folder."""
    path = tmp_path_factory.mktemp("measured") / "results.json"
    done = on_the_other_machine(carried, "--label", "edge", "--to", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    return path
