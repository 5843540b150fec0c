"""The text of the `modeling.py` that goes into an exported folder: always the same for the same kind of network.

It is made of this program's own files and of nothing that a database, a config or a folder holds, so that a folder's
copy can be compared with it, byte by byte.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PREFIX = "paretovit_"
"""Names of the entry points of ours, all of them and no others."""

_HERE = Path(__file__).parent
_TEMPLATE = _HERE / "modeling.py"
_NETWORKS = _HERE.parent.parent / "spaces" / "networks"
_NONE = """ENTRY_POINTS: tuple[Callable[..., nn.Module], ...] = ()
default_cfgs: dict[str, dict[str, Any]] = {}
"""


def modeling_source(model: str) -> str:
    """The text for a network of the entry point `model`; those of ours bring along the file that defines them."""
    text = _TEMPLATE.read_text(encoding="utf-8")
    home = home_of(model)
    if home is None:
        return text
    assert text.count(_NONE) == 1
    return text.replace(_NONE, _body(home.read_text(encoding="utf-8")))


def home_of(model: str) -> Path | None:
    """The file that defines an entry point of ours; None for any other name. It is read, not imported: no torch."""
    if not model.startswith(PREFIX):
        return None
    return next((path for path in sorted(_NETWORKS.glob("*.py")) if model in _functions(path)), None)


@cache
def _functions(path: Path) -> frozenset[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


def _body(text: str) -> str:
    """A module without its docstring and its `from __future__` line."""
    start = next(
        node.lineno
        for node in ast.parse(text).body
        if not isinstance(node, ast.Expr)
        and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    )
    return "".join(text.splitlines(keepends=True)[start - 1 :])
