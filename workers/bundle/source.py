"""The text of the `modeling.py` that goes into an exported folder: always the same for the same kind of network.

It is made of this program's own files and of nothing that a database, a config or a folder holds, so that a folder's
copy can be compared with it, byte by byte.
"""

from __future__ import annotations

import ast
from pathlib import Path

PREFIX = "paretovit_"
"""Names of the entry points of ours, all of them and no others."""

_HERE = Path(__file__).parent
_TEMPLATE = _HERE / "modeling.py"
_NETWORKS = _HERE.parent.parent / "spaces" / "entry_points.py"
_NONE = """ENTRY_POINTS: tuple[Callable[..., nn.Module], ...] = ()
default_cfgs: dict[str, dict[str, Any]] = {}
"""


def modeling_source(model: str) -> str:
    """The text for a network of the entry point `model`; ours bring along their definitions."""
    text = _TEMPLATE.read_text(encoding="utf-8")
    if not model.startswith(PREFIX):
        return text
    assert text.count(_NONE) == 1
    return text.replace(_NONE, _body(_NETWORKS.read_text(encoding="utf-8")))


def _body(text: str) -> str:
    """A module without its docstring and its `from __future__` line."""
    start = next(
        node.lineno
        for node in ast.parse(text).body
        if not isinstance(node, ast.Expr)
        and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    )
    return "".join(text.splitlines(keepends=True)[start - 1 :])
