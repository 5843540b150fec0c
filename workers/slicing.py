"""Which part of a larger network's tensors becomes a smaller one's: pure index arithmetic on names and shapes.

Both are transformers of the same kind as timm builds them, plain ones or Swin's. What a tensor means, and so how it is
cut, is told by its name: channels of the residual stream, whole heads, hidden units of an MLP, blocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]
Places = tuple[tuple[int, ...], tuple[int, ...]]
"""Along one axis: where something goes, and where it is taken from; as many of both."""

_BLOCK = re.compile(r"((?:.*\.)?blocks)\.(\d+)\.(.+)")
_HALVED_OR_QUARTERED = re.compile(r".*downsample\.(norm\.(weight|bias)|reduction\.weight)")
_LINEAR = ("attn.qkv.weight", "attn.proj.weight", "mlp.fc1.weight", "mlp.fc2.weight")
_CONVOLUTION = ("out", "in", "height", "width")
MERGED = 4
"""Patches that Swin's merging puts side by side."""


@dataclass(frozen=True)
class Network:
    """shapes: parameter -> shape, in order. heads: attention module -> its heads. num_patches: that positions belong
    to. num_stages: 1 of a plain transformer."""

    shapes: Mapping[str, Shape]
    heads: Mapping[str, int]
    num_patches: int
    num_stages: int = 1

    @property
    def depths(self) -> dict[str, int]:
        """Container of blocks -> their number."""
        found: dict[str, int] = {}
        for name in self.shapes:
            if match := _BLOCK.fullmatch(name):
                found[match[1]] = max(found.get(match[1], 0), int(match[2]) + 1)
        return found


@dataclass(frozen=True)
class Slice:
    """Of one parameter of the smaller network. source: the parameter that it is cut out of. axes: along each axis.
    gain: that what is taken is multiplied by."""

    source: str
    axes: tuple[Places, ...]
    gain: float = 1.0

    @property
    def shape(self) -> Shape:
        """Of what is taken."""
        return tuple(len(places[0]) for places in self.axes)


def blocks_of(own: int, theirs: int) -> tuple[int, ...]:
    """Which blocks of a stage with `theirs` become the first ones of a stage with `own`."""
    return tuple(range(min(own, theirs)))


def slices(own: Network, source: Network) -> dict[str, Slice]:
    """Parameter -> the part of the source that it begins from; what has none is left out."""
    chosen = {
        container: blocks_of(depth, source.depths.get(container, 0))
        for container, depth in own.depths.items()
    }
    found: dict[str, Slice] = {}
    for name, shape in own.shapes.items():
        theirs = _counterpart(name, source, chosen)
        if theirs is None or (name.startswith("norm.") and own.num_stages != source.num_stages):
            continue
        other = source.shapes[theirs]
        if len(shape) != len(other):
            continue
        axes = _axes(name, shape, other, _heads(own, name), _heads(source, theirs), own.num_patches)
        if axes is not None:
            found[name] = Slice(theirs, axes, _gain(name, other, axes))
    return found


def _counterpart(name: str, source: Network, chosen: Mapping[str, Sequence[int]]) -> str | None:
    """The source's parameter that means the same; None where it has none."""
    if match := _BLOCK.fullmatch(name):
        container, number, rest = match[1], int(match[2]), match[3]
        if number >= len(chosen[container]):
            return None
        name = f"{container}.{chosen[container][number]}.{rest}"
    elif name.startswith("fc_norm.") and name not in source.shapes:
        name = name.removeprefix("fc_")
    elif name.startswith("norm.") and name not in source.shapes:
        name = f"fc_{name}"
    return name if name in source.shapes else None


def _heads(network: Network, name: str) -> int:
    """Of the attention that a parameter belongs to; 1 where it belongs to none."""
    return next((heads for module, heads in network.heads.items() if name.startswith(f"{module}.")), 1)


def _axes(
    name: str, own: Shape, theirs: Shape, own_heads: int, their_heads: int, num_patches: int
) -> tuple[Places, ...] | None:
    """None where the two do not mean the same."""
    axes = [_first(one, other) for one, other in zip(own, theirs, strict=True)]
    if name.endswith(("attn.qkv.weight", "attn.qkv.bias")):
        axes[0] = _by_head(own[0], theirs[0], own_heads, their_heads, parts=3)
    elif name.endswith("attn.proj.weight"):
        axes[1] = _by_head(own[1], theirs[1], own_heads, their_heads, parts=1)
    elif name == "pos_embed":
        axes[1] = _positions(own[1], theirs[1], num_patches)
    elif _HALVED_OR_QUARTERED.fullmatch(name):
        axes[-1] = _by_head(own[-1], theirs[-1], MERGED, MERGED, parts=1)
    same = (
        (0,)
        if name.endswith("relative_position_bias_table")
        else (2, 3)
        if len(own) == len(_CONVOLUTION)
        else ()
    )
    return tuple(axes) if all(own[axis] == theirs[axis] for axis in same) else None


def _gain(name: str, theirs: Shape, axes: Sequence[Places]) -> float:
    """Of linear layers of a block that see fewer inputs, so that what they give stays as large."""
    if not name.endswith(_LINEAR):
        return 1.0
    return math.sqrt(theirs[1] / len(axes[1][1]))


def _first(own: int, theirs: int) -> Places:
    both = tuple(range(min(own, theirs)))
    return both, both


def _by_head(own: int, theirs: int, own_heads: int, their_heads: int, parts: int) -> Places:
    """Of an axis that is parts x heads x head width: the first heads of each part, and the first places of each."""
    width, their_width = own // (parts * own_heads), theirs // (parts * their_heads)
    kept = [
        (part, head, place)
        for part in range(parts)
        for head in range(min(own_heads, their_heads))
        for place in range(min(width, their_width))
    ]
    to = tuple((part * own_heads + head) * width + place for part, head, place in kept)
    return to, tuple((part * their_heads + head) * their_width + place for part, head, place in kept)


def _positions(own: int, theirs: int, num_patches: int) -> Places:
    """Of position embeddings: those of tokens before the patches, as many as both have, then of all patches."""
    before, theirs_before = own - num_patches, theirs - num_patches
    both = range(min(before, theirs_before))
    patches = range(num_patches)
    to = (*both, *(before + place for place in patches))
    return to, (*both, *(theirs_before + place for place in patches))
