"""Plain transformers of which some blocks attend to a part of the map only (Li et al., arXiv:2203.16527; the encoder
of SAM), built by timm's `VisionTransformerSAM` through our entry points.

What the sparse blocks see, by `attention`: `window`, the patches of the same window; `grid`, patches that are spread
evenly over the map, as far apart as the map has windows (the grid attention of MaxViT, arXiv:2204.01697); `subsampled`,
the whole map, after keys and values were averaged over squares of `kv_stride` patches (as in PVT v2,
arXiv:2106.13797). `global_blocks` of the blocks see everything: the first ones, the last ones, or the last of each of
as many equal parts of the depth (as in SAM).

Windows are smaller than the map, since one as large would be global; a map that they do not divide is padded by timm
with zeros, which take part in attention, and may grow by half at most. Grids divide the map. There are at least 2 x 2
keys. The classifier reads the mean of the patches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaces.costs import Analysis, Cost, attention, linear, mixing, mlp, norm, patches, total
from spaces.dims import Choice, Condition, Domain, IntRange, Rule, Value
from spaces.spec import ArchSpec, Task
from spaces.swin import MAX_PADDING, padded
from spaces.vit import (
    BLOCK_FIXED,
    OPTIONAL,
    block_args,
    block_limits,
    encoder_limits,
    patch_sizes,
    task_args,
    unusual,
)

WINDOW = "paretovit_windowed_vit"
GRID = "paretovit_grid_vit"
SUBSAMPLED = "paretovit_subsampled_vit"
TIMM = "samvit_base_patch16_224"
"""timm's own model of windows; the networks of `WINDOW` are the same ones."""

ATTENTION = ("window", "grid", "subsampled")
POSITIONS = ("relative", "learned", "none", "rotary")
PLACEMENTS = ("last", "first", "even")
FIXED: Mapping[str, Value] = {"positions": "relative", **BLOCK_FIXED}
MAX_GLOBAL = 16


def global_indexes(depth: int, count: int, placement: str) -> list[int]:
    """Which of the blocks, from 0 on, see the whole map."""
    if placement == "first":
        return list(range(count))
    if placement == "last":
        return list(range(depth - count, depth))
    return [-(-depth * (part + 1) // count) - 1 for part in range(count)]


def analyse(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of a VisionTransformerSAM without a neck."""
    side = args["window_size"]
    windows = (padded(image_size // args["patch_size"], side) // side) ** 2
    return _analyse(args, image_size, _mixing(args, side, windows))


def analyse_subsampled(args: Mapping[str, Any], image_size: int) -> Analysis:
    """Closed form for the complete arguments of our entry point whose keys and values are averaged."""
    grid, width = image_size // args["patch_size"], args["embed_dim"]
    tokens, side = grid * grid, -(-grid // args["kv_stride"])
    mixed = mixing(
        tokens,
        side * side,
        width,
        args["num_heads"],
        is_sparse=True,
        is_fused=not args["use_rel_pos"],
    )
    cost = linear(tokens, width, width, args["qkv_bias"]) + linear(
        side * side, width, 2 * width, args["qkv_bias"]
    )
    cost += mixed + linear(tokens, width, width)
    if args["use_rel_pos"]:
        cost += _relative(args, grid, side)
    return _analyse(args, image_size, cost)


def _analyse(args: Mapping[str, Any], image_size: int, sparse: Cost) -> Analysis:
    """sparse: cost of the attention in a block that is not global."""
    grid, width = image_size // args["patch_size"], args["embed_dim"]
    tokens, num_global = grid * grid, len(args["global_attn_indexes"])
    cost = patches(grid, args["patch_size"], args["in_chans"], width)
    cost += Cost(params=tokens * width * args["use_abs_pos"])
    one = norm(width) * 2 + mlp(tokens, width, args["mlp_ratio"])
    if args["qk_norm"]:
        one += norm(width // args["num_heads"]) * 2
    if args["init_values"]:
        one += Cost(params=2 * width)
    cost += one * args["depth"] + _mixing(args, grid, 1) * num_global + sparse * (args["depth"] - num_global)
    head = linear(1, width, args["num_classes"]) if args["num_classes"] else Cost()
    return total(cost + norm(width) + head, tokens)


def _mixing(args: Mapping[str, Any], side: int, windows: int) -> Cost:
    """Attention inside each of `windows` squares of `side` x `side` patches."""
    cost = attention(
        side * side,
        args["embed_dim"],
        args["num_heads"],
        windows,
        args["qkv_bias"],
        is_fused=not args["use_rel_pos"],
    )
    if not args["use_rel_pos"]:
        return cost
    relative = _relative(args, side, side)
    return cost + Cost(relative.params, relative.flops * windows, relative.activations * windows)


def _relative(args: Mapping[str, Any], side: int, key_side: int) -> Cost:
    """A vector for every distance of rows and of columns, multiplied with the queries of `side` x `side` patches."""
    width, heads = args["embed_dim"], args["num_heads"]
    queries = side * side
    return Cost(
        params=2 * (2 * side - 1) * (width // heads),
        flops=4 * queries * key_side * width,
        activations=2 * heads * queries * key_side,
    )


class Windowed:
    """patch_size, depth, heads, head_width, mlp_ratio, attention, window or kv_stride, global_blocks,
    global_placement; and those of `FIXED`."""

    name = "windowed"
    conditions: Mapping[str, Condition] = {
        "window": ("attention", ("window", "grid")),
        "kv_stride": ("attention", ("subsampled",)),
        "global_placement": ("global_blocks", tuple(range(1, MAX_GLOBAL + 1))),
    }
    named: Mapping[str, Mapping[str, Value]] = {}

    def limits(self, task: Task) -> dict[str, Domain]:
        patches = tuple(size for size in patch_sizes(task).values if task.image_size // int(size) >= 3)
        encoder = {key: domain for key, domain in encoder_limits().items() if key != "pooling"}
        return {
            "patch_size": Choice(patches),
            **encoder,
            "attention": Choice(ATTENTION),
            "window": IntRange(2, 32),
            "kv_stride": IntRange(2, 32),
            "global_blocks": IntRange(0, MAX_GLOBAL),
            "global_placement": Choice(PLACEMENTS),
            "positions": Choice(POSITIONS),
            **block_limits(),
        }

    def rules(self, task: Task) -> Sequence[Rule]:
        def window_fits(values: Mapping[str, Any]) -> str | None:
            grid, window = task.image_size // values["patch_size"], values["window"]
            if window >= grid:
                return f"window {window} is not smaller than the map of {grid} x {grid} patches"
            wide = padded(grid, window)
            if values["attention"] == "grid" and wide != grid:
                return f"a grid of {window} x {window} does not divide the map of {grid} x {grid} patches"
            if (wide / grid) ** 2 <= MAX_PADDING:
                return None
            return f"window {window} would pad the map from {grid} to {wide} patches a side"

        def keys_are_left(values: Mapping[str, Any]) -> str | None:
            grid, stride = task.image_size // values["patch_size"], values["kv_stride"]
            if -(-grid // stride) >= 2:
                return None
            return f"kv_stride {stride} leaves one key of {grid} x {grid} patches"

        return (
            Rule(("patch_size", "attention", "window"), window_fits),
            Rule(("patch_size", "kv_stride"), keys_are_left),
            Rule(("depth", "global_blocks"), _some_are_sparse),
            Rule(("depth", "global_blocks", "global_placement"), _placed_in_one_way),
            Rule(("attention", "positions"), _keys_have_coordinates),
        )

    def spec(self, task: Task, values: Mapping[str, Any]) -> ArchSpec:
        chosen = {"global_placement": "last", **FIXED, **values}
        kind, positions = chosen["attention"], chosen["positions"]
        part = (
            {"kv_stride": chosen["kv_stride"]} if kind == "subsampled" else {"window_size": chosen["window"]}
        )
        args = {
            "patch_size": chosen["patch_size"],
            "embed_dim": chosen["heads"] * chosen["head_width"],
            "depth": chosen["depth"],
            "num_heads": chosen["heads"],
            "mlp_ratio": float(chosen["mlp_ratio"]),
            **part,
            "global_attn_indexes": global_indexes(
                chosen["depth"], chosen["global_blocks"], chosen["global_placement"]
            ),
            "use_abs_pos": positions == "learned",
            "use_rel_pos": positions == "relative",
            "use_rope": positions == "rotary",
            **task_args(task),
            **unusual(block_args(chosen)),
        }
        model = {"window": WINDOW, "grid": GRID, "subsampled": SUBSAMPLED}[kind]
        return ArchSpec(model, args, task.image_size)


def _some_are_sparse(values: Mapping[str, Any]) -> str | None:
    depth, count = values["depth"], values["global_blocks"]
    return None if count < depth else f"{count} global blocks leave no other of {depth}"


def _placed_in_one_way(values: Mapping[str, Any]) -> str | None:
    """Of several placements that come to the same blocks, the first in `PLACEMENTS` is legal."""
    depth, count, placement = values["depth"], values["global_blocks"], values["global_placement"]
    if count >= depth:
        return None
    own = global_indexes(depth, count, placement)
    for other in PLACEMENTS[: PLACEMENTS.index(placement)]:
        if global_indexes(depth, count, other) == own:
            return f"{count} of {depth} blocks placed {placement} are the {other} ones"
    return None


def _keys_have_coordinates(values: Mapping[str, Any]) -> str | None:
    if values["attention"] != "subsampled" or values["positions"] != "rotary":
        return None
    return "rotary positions turn every key by its place, and subsampled keys have none"


DEFAULTS: Mapping[str, Any] = {key: OPTIONAL[key] for key in block_args(BLOCK_FIXED)}
"""Optional arguments that a spec leaves out where they have these values."""
