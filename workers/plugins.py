"""Modules of the user's own, allowed as the process started: they register further entry points with timm.

`paretovit --plugin MODULE` sets PARETOVIT_PLUGINS, which workers inherit. A config or a database can name an entry
point, never a module.
"""

from __future__ import annotations

import importlib
import os

from workers.errors import MachineError

VARIABLE = "PARETOVIT_PLUGINS"


def load_plugins() -> None:
    """Imports the modules named in PARETOVIT_PLUGINS, parted by commas.

    Raises MachineError naming one that cannot be found here.
    """
    for name in filter(None, (name.strip() for name in os.environ.get(VARIABLE, "").split(","))):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise MachineError(
                f"plugin {name!r} cannot be imported: {error}; is it on PYTHONPATH?"
            ) from error
