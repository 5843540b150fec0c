"""Modules of the user's own, allowed as the process started: they register further entry points with timm, and hold
families of their own.

`paretovit --plugin MODULE` sets PARETOVIT_PLUGINS, which workers inherit. A config or a database can name an entry
point, or a class of a module that was allowed, and never makes one be imported.
"""

from __future__ import annotations

import importlib
import os

from workers.errors import MachineError

VARIABLE = "PARETOVIT_PLUGINS"


def allowed() -> tuple[str, ...]:
    """The modules named in PARETOVIT_PLUGINS, parted by commas. Imports nothing."""
    return tuple(filter(None, (name.strip() for name in os.environ.get(VARIABLE, "").split(","))))


def load_plugins() -> None:
    """Imports the modules that are allowed.

    Raises MachineError naming one that cannot be found here, or that does not survive its import.
    """
    for name in allowed():
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise MachineError(
                f"plugin {name!r} cannot be imported: {error}; is it on PYTHONPATH?"
            ) from error
        except RAISED as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise MachineError(f"plugin {name!r} cannot be imported: {reason}") from error


def bringing(module: str) -> str:
    """What to import to have what `module` defines: the allowed module that it is, or is inside of; else all."""
    within = [name for name in allowed() if module == name or module.startswith(f"{name}.")]
    return ", ".join(within[:1] or allowed()) or module


RAISED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What a module of which nothing is known may raise as it is imported."""
