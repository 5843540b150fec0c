"""Networks of timm that a search takes as parts of others: what is known of those that `space.backbone` names."""

from __future__ import annotations

import re

from search.config import SearchConfig
from spaces import backbone
from spaces.dims import SpaceError
from workers.errors import MachineError

NAME = re.compile(r"[A-Za-z0-9_]{1,95}")


def backbone_of(config: SearchConfig) -> backbone.Backbone:
    """The family that knows every name of `space.backbone.backbone`, and no others where some are given.

    Where one of them is none of `spaces.backbone.KNOWN`, all are looked up in timm, so that equal networks are seen to
    be equal. Raises SpaceError for a name that is no network with feature levels.
    """
    given = config.space.ranges.get(backbone.Backbone.name, {}).get("backbone", ())
    names = [name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)]
    if not names:
        return backbone.Backbone()
    if all(name in backbone.KNOWN for name in names):
        return backbone.Backbone({name: backbone.KNOWN[name] for name in names})
    return backbone.Backbone({name: _look_up(name) for name in names})


def _look_up(name: str) -> backbone.Features:
    from spaces import models
    from workers.plugins import load_plugins

    try:
        load_plugins()
    except MachineError as error:
        raise SpaceError(f"backbone.backbone: {error}") from error
    if not NAME.fullmatch(name):
        raise SpaceError(
            f"backbone.backbone: {name[:60]!r} is no name of a network without weights, such as resnet18"
        )
    try:
        return models.features(name)
    except ValueError as error:
        raise SpaceError(f"backbone.backbone: {name!r} {error}") from None
