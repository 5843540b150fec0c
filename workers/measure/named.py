"""timm's own models by name, as specs to measure."""

from __future__ import annotations

import difflib

import timm

from spaces import models
from spaces.spec import ArchSpec


def spec_of(name: str, image_size: int, channels: int, num_classes: int) -> ArchSpec:
    """The timm model `name` for such images. Raises ValueError, naming near names, where timm has none of that name.

    `img_size` is among the arguments where the model takes it.
    """
    if not timm.is_model(name):
        near = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise ValueError(f"{name!r} is no model of timm {timm.__version__}{hint}")
    args = {"in_chans": channels, "num_classes": num_classes}
    sized = ArchSpec(name, args | {"img_size": image_size}, image_size)
    try:
        models.count(sized)
    except TypeError as error:
        if "img_size" not in str(error):
            raise
        return ArchSpec(name, args, image_size)
    return sized
