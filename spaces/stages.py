"""What families of several stages have in common: how many blocks each stage has, and the heads, which double from one
stage to the next."""

from __future__ import annotations

from collections.abc import Mapping

from spaces.dims import Choice, Condition, Domain, FloatRange, IntRange
from spaces.spec import Task
from spaces.vit import patch_sizes

MAX_STAGES = 4

CONDITIONS: Mapping[str, Condition] = {
    f"depth_{stage}": ("num_stages", tuple(range(stage, MAX_STAGES + 1)))
    for stage in range(3, MAX_STAGES + 1)
}


def strides(task: Task) -> Choice:
    """Divisors of the image side that leave at least 3 patches a side, so that there is something to reduce."""
    return Choice(tuple(size for size in patch_sizes(task).values if task.image_size // int(size) >= 3))


def limits() -> dict[str, Domain]:
    """num_stages, depth_1 .. depth_4, heads and head_width of the first stage, mlp_ratio."""
    return {
        "num_stages": IntRange(2, MAX_STAGES),
        **{f"depth_{stage}": IntRange(1, 32) for stage in range(1, MAX_STAGES + 1)},
        "heads": IntRange(1, 32),
        "head_width": IntRange(4, 128, 4),
        "mlp_ratio": FloatRange(0.25, 8.0, 0.25),
    }
