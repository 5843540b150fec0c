"""Whether an exported folder is what was exported, and still answers as it did. Imports no torch.

First every file is compared with the manifest. Then the model is run in a process of its own, with the program text
that `source` gives: the folder's modeling.py is compared with it and never run, so no code of a folder is executed.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaces.spec import ArchSpec
from workers import memory_limit
from workers.bundle import manifest
from workers.bundle.manifest import MODELING, SPEC
from workers.bundle.source import modeling_source
from workers.errors import ExportError

TOLERANCE = 1e-4
"""Largest difference of a score, as a share of the largest score or of 1. Runtimes and processors add fp32 numbers up
in different orders, which comes to some 1e-6; another network or another image changes the first digits."""

MAX_SECONDS = 600
"""For torch to start and the largest networks to see 32 images twice on a slow processor. A spec can ask for more."""

INSTALL = "pip install 'paretovit[export]'"
_NO_SPEC = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What JSON that anybody may have written raises: wrong kinds of values, infinite numbers, endless nesting."""


@dataclass(frozen=True)
class Verified:
    """files: of the folder, by name. differences: file -> largest absolute difference of a score from the stored ones.
    tolerance: the largest that passes. versions: of the packages that it was run with. facts: of the manifest.
    imported: top-level packages that the check had loaded."""

    folder: str
    files: tuple[str, ...]
    differences: Mapping[str, float]
    tolerance: float
    num_images: int
    versions: Mapping[str, str]
    facts: Mapping[str, Any]
    imported: tuple[str, ...]


def verify(folder: Path) -> Verified:
    """Raises ExportError naming the file that is not as it should be."""
    found = manifest.check(folder)
    source = _own_source(folder)
    answers = _rerun(folder, source)
    tolerance = TOLERANCE * max(1.0, float(answers["largest"]))
    for name, difference in answers["differences"].items():
        _judge(folder, name, difference, tolerance)
    return Verified(
        folder=str(folder),
        files=(*sorted(found.files), manifest.NAME),
        differences=answers["differences"],
        tolerance=tolerance,
        num_images=int(answers["num_images"]),
        versions=answers["versions"],
        facts=found.facts,
        imported=tuple(answers["imported"]),
    )


def _own_source(folder: Path) -> str:
    """The text that this program has for the folder's modeling.py. Raises ExportError where they differ."""
    try:
        spec = ArchSpec.from_dict(json.loads(manifest.text_of(folder / SPEC)))
        source = modeling_source(spec.model)
        is_ours = (folder / MODELING).read_bytes() == source.encode()
    except _NO_SPEC as error:
        raise ExportError(f"{folder}: {SPEC} is no description of a network ({error})") from error
    if not is_ours:
        raise ExportError(
            f"{folder}: {MODELING} is not what this paretovit writes, and is not run; "
            "verify the folder with the version that wrote it"
        )
    return source


def _rerun(folder: Path, source: str) -> dict[str, Any]:
    """What recheck.py answers. It gets the text by standard input, so that nothing lies about when we are killed."""
    script = Path(__file__).with_name("recheck.py")
    max_bytes = memory_limit.job_bytes()
    limits = [str(max_bytes), str(MAX_SECONDS)]
    command = [sys.executable, "-I", "-B", str(script), str(folder.absolute()), *limits]
    try:
        done = subprocess.run(
            command, cwd="/", input=source.encode(), capture_output=True, timeout=MAX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ExportError(
            f"{folder}: the model gave no answer in {MAX_SECONDS} seconds, more than a check may take; look at {SPEC}"
        ) from error
    if done.returncode != 0:
        reason = _reason(done.returncode, done.stderr.decode(errors="replace"))
        if _is_for_memory(done.returncode, reason):
            reason += (
                f"; a check may take {max_bytes / memory_limit.MB:,.0f} MB: "
                f"free memory, or give it more with {memory_limit.VARIABLE}"
            )
        raise ExportError(f"{folder}: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def _reason(code: int, told: str) -> str:
    """Why the check's process failed: what it told last, in one line that a terminal can show."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    last = "".join(sign if sign.isprintable() else "?" for sign in lines[-1])[:300] if lines else ""
    if last.startswith(tuple(manifest.REQUIRED | manifest.OPTIONAL)):
        return last
    return f"the model does not run: {last or _ending(code)}"


def _is_for_memory(code: int, reason: str) -> bool:
    """Whether memory did not suffice, or may not have: what cannot be allocated in C ends a process."""
    is_told = "MemoryError" in reason or memory_limit.is_out_of_memory(RuntimeError(reason))
    return is_told or code in (-signal.SIGKILL, -signal.SIGABRT)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return f"its process was ended by {signal.Signals(-code).name}"


def _judge(folder: Path, name: str, difference: float | None, tolerance: float) -> None:
    if difference is None:
        raise ExportError(f"{folder}: {name} cannot be checked without onnxruntime: {INSTALL}")
    if not (math.isfinite(difference) and difference <= tolerance):
        raise ExportError(
            f"{folder}: {name} gives other scores than those stored: they differ by {difference:.3g}, "
            f"more than {tolerance:.3g}"
        )
