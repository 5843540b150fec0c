"""Whether this machine has what torch.compile needs. Standard library only."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path


def missing(is_cuda: bool) -> str | None:
    """What torch.compile lacks here, in words; None where it can work.

    For a CPU it writes C++ against Python's headers. For a GPU it writes Triton, whose launcher is compiled from C.
    """
    if is_cuda and importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    if is_cuda:
        variable, language, names = "CC", "C", ("gcc", "clang")
    else:
        variable, language, names = "CXX", "C++", ("clang++" if sys.platform == "darwin" else "g++",)
    wanted = os.environ.get(variable) or ""
    known = [wanted.split()[0]] if wanted.strip() else list(names)
    if not any(shutil.which(name) for name in known):
        where = f"{variable}={wanted}" if wanted.strip() else " or ".join(names)
        return f"no {language} compiler is here ({where})"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        return f"Python's headers are not here ({headers / 'Python.h'})"
    return None
