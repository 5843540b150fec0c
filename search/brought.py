"""What a search has from modules of the user's own, as it is stored with it: which module to import before timm builds
a network, and what the dimensions of the user's families were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

KEY = "plugins"
"""Of a search's `data`; missing where no module brought anything."""


@dataclass(frozen=True)
class Brought:
    """modules: by timm entry point, of the baselines and of the networks that were drawn as the search began.
    families: by name, the module of one whose networks are not all timm's. dimensions: by name, a digest."""

    modules: Mapping[str, str] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    dimensions: Mapping[str, str] = field(default_factory=dict)

    def module(self, family: str, model: str) -> str | None:
        """What `import` takes to make timm know a network; None where nothing is missing."""
        return self.modules.get(model) or self.families.get(family)

    def to_dict(self) -> dict[str, Any]:
        """What is added to a search's `data`."""
        known = {name: dict(value) for name, value in asdict(self).items()}
        return {KEY: known} if any(known.values()) else {}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Brought:
        """From a search's `data`."""
        return cls(**data.get(KEY, {}))
