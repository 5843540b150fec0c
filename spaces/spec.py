"""ArchSpec: one architecture as plain data, stored, logged and passed everywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """What a network of a search has to read and tell apart.

    image_size: side of the square input, pixels. channels: 1 or 3. num_classes: at least 2.
    """

    image_size: int
    channels: int
    num_classes: int


@dataclass(frozen=True)
class ArchSpec:
    """A timm entry point, its arguments, and the image size that it is fed.

    `timm.create_model(spec.model, **spec.args)` rebuilds the network, after `import spaces.models`
    where the entry point is one of ours. `args` holds JSON values only and includes `in_chans` and
    `num_classes`, so that a spec alone says what is built and what it costs.

    weights: name of the pretrained weights that training begins from, as timm names them; None for fresh ones.
    """

    model: str
    args: Mapping[str, Any] = field(default_factory=dict)
    image_size: int = 224
    weights: str | None = None

    def __post_init__(self) -> None:
        # Through JSON and back: tuples become lists and nothing outside can change the arguments later.
        object.__setattr__(self, "args", json.loads(_canonical(dict(self.args))))

    def __hash__(self) -> int:
        return hash(self.digest)

    def to_dict(self) -> dict[str, Any]:
        """JSON object with the keys model, args and image_size, and weights where there are any."""
        data = {"model": self.model, "args": dict(self.args), "image_size": self.image_size}
        return data if self.weights is None else data | {"weights": self.weights}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArchSpec:
        """The inverse of `to_dict`. Raises KeyError for a missing key."""
        return cls(data["model"], data["args"], int(data["image_size"]), data.get("weights"))

    @property
    def canonical(self) -> str:
        """Canonical JSON: sorted keys, no spaces, no NaN."""
        return _canonical(self.to_dict())

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:16]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
