"""Are `spaces`, `workers`, `search` and `dashboards` the ones of this program?

Their names are common, and a distribution named `spaces` exists in the package index: it would shadow ours,
or overwrite it in the same folder.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from search.errors import UserError

PACKAGES = ("spaces", "workers", "search", "dashboards")
_OURS = {"spaces": "spec.py", "workers": "job.py", "search": "config.py", "dashboards": "templates"}
_REMEDY = "`pip uninstall NAME`, then `pip install --force-reinstall --no-deps paretovit`"


def check_packages() -> None:
    """Raises UserError naming the package that comes from elsewhere, and the remedy."""
    places = {name: _folder(name) for name in PACKAGES}
    problem = foreign(places)
    if problem is not None:
        name, text = problem
        raise UserError(f"{text}\n{_REMEDY.replace('NAME', name)}")


def foreign(places: dict[str, Path | None]) -> tuple[str, str] | None:
    """(package, what is wrong) for the first package that is not this program's, else None.

    places: package -> its folder, None where it is not importable.
    """
    home = places["search"]
    root = home.parent if home else None
    for name, place in places.items():
        if place is None or root is None:
            return name, f"the package {name!r} of paretovit is missing from {root or 'sys.path'}"
        if place.parent != root:
            return (
                name,
                f"the package {name!r} comes from {place}, not from {root}: another distribution hides it",
            )
        if not (place / _OURS[name]).exists():
            return (
                name,
                f"the package {name!r} in {root} is not paretovit's: another distribution replaced it",
            )
        if next(root.glob(f"{name}-*.dist-info"), None) is not None:
            return (
                name,
                f"the distribution {name!r} is installed in {root}, over paretovit's package of that name",
            )
    return None


def _folder(name: str) -> Path | None:
    """Found without importing the package where it is not imported yet."""
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None else find_spec(name)
    return Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
