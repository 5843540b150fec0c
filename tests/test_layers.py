"""What the import contracts and the linter cannot say by themselves. That the contracts hold is `lint-imports`."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("spaces", "workers", "search", "dashboards")
WITH_TORCH = ("spaces.models", "spaces.entry_points", "spaces.networks.")
THE_ONE = "workers/perform.py"  # where a candidate's own errors become its outcome


def test_every_space_stands_on_the_standard_library() -> None:
    """import-linter looks at the modules that are named; a new one must be among them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = [one for one in settings["contracts"] if one["name"].startswith("Spaces stand on")]
    files = (ROOT / "spaces").rglob("*.py")
    modules = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    there = {name for name in modules if not name.endswith("__init__") and not name.startswith(WITH_TORCH)}
    assert sorted(contract["source_modules"]) == sorted(there)
    assert {"torch", "timm", "numpy"} <= set(contract["forbidden_modules"])


def test_errors_of_every_kind_are_caught_in_one_place_alone() -> None:
    found = {
        f"{file.relative_to(ROOT)}:{line}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for line in broad(ast.parse(file.read_text()))
    }
    assert [place.partition(":")[0] for place in found] == [THE_ONE]


@pytest.mark.parametrize(
    ("handler", "is_broad"),
    [
        ("except: pass", True),
        ("except Exception: pass", True),
        ("except (OSError, Exception) as e: raise", True),
        ("except builtins.Exception: pass", True),
        ("except BaseException: pass", True),
        ("except BaseException:\n  if odd:\n    raise", True),
        ("except BaseException as e: raise ValueError from e", True),
        ("except BaseException:\n  close()\n  raise", False),
        ("except: raise", False),
        ("except* Exception: pass", True),
        ("except OSError: pass", False),
    ],
)
def test_what_counts_as_every_kind(handler: str, is_broad: bool) -> None:
    assert bool(list(broad(ast.parse(f"try:\n  go()\n{handler}")))) == is_broad


def test_suppressing_every_kind_counts_too() -> None:
    assert list(broad(ast.parse("with contextlib.suppress(Exception): go()"))) == [1]
    assert list(broad(ast.parse("with contextlib.suppress(OSError): go()"))) == []


def broad(tree: ast.AST) -> Iterator[int]:
    """Lines that catch every kind of error, but for those that clean up and raise the same error again."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = _names(node.type)
            passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if "Exception" in caught or ("BaseException" in caught and not passes_on):
                yield node.lineno
        if isinstance(node, ast.Call) and _names(node.func) == {"suppress"}:
            kinds = set().union(*map(_names, node.args))
            yield from [node.lineno] if kinds & {"Exception", "BaseException"} else []


def _names(caught: ast.expr | None) -> set[str]:
    """Last parts of the names; of `except:` what it stands for."""
    if caught is None:
        return {"BaseException"}
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return {ast.unparse(kind).rpartition(".")[2] for kind in kinds}
