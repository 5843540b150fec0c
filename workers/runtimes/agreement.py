"""Whether what a runtime answers is what eager torch answers in fp32: else its time is that of another network.

Errors are relative, of all scores together: the norm of the difference divided by the norm of eager's scores. For 32
images and a network of each family with random weights they came to 6e-4 to 9e-4 (fp16), 4e-3 to 8e-3 (bf16) and 1e-2
to 3e-2 (int8).
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from workers.errors import CandidateError
from workers.settings import Precision

TOLERANCES: Mapping[Precision, float] = {"fp32": 1e-3, "fp16": 1e-2, "bf16": 5e-2, "int8": 1e-1}
"""Largest relative error of each."""
MIN_AGREEMENT = 0.9
"""With int8: share of the images whose best class has to be eager's."""
NUM_IMAGES: Mapping[Precision, int] = {"fp32": 4, "fp16": 8, "bf16": 8, "int8": 32}
"""That are compared."""


def check(expected: Tensor, scores: Tensor, what: str, precision: Precision) -> None:
    """Raises CandidateError unless `scores` are `expected` (both [n, classes]), but for what the precision explains.

    what: the runtime, in words. A class counts as eager's best where eager scores it as high but for the tolerance:
    random weights leave many a tie.
    """
    expected, scores = expected.detach().float().cpu(), scores.detach().float().cpu()
    tolerance = TOLERANCES[precision]
    scale = max(float(expected.norm()), 1e-6)
    error = float((scores - expected).norm()) / scale
    if not error <= tolerance:  # NaN too
        raise CandidateError(
            f"{what}'s scores in {precision} differ from eager torch's in fp32 by {error:.3g} of them, "
            f"more than {tolerance:g}"
        )
    if precision == "int8" and (share := agreement(expected, scores, tolerance)) < MIN_AGREEMENT:
        raise CandidateError(
            f"{what} in int8 chooses eager torch's class for {share:.0%} of the images, less than {MIN_AGREEMENT:.0%}"
        )


def agreement(expected: Tensor, scores: Tensor, tolerance: float) -> float:
    """Share of the rows whose best class in `scores` is the best in `expected`, or within `tolerance` of the largest
    absolute score of that row."""
    chosen = expected.gather(1, scores.argmax(1, keepdim=True)).squeeze(1)
    slack = tolerance * expected.abs().amax(1)
    return float((chosen >= expected.amax(1) - slack).float().mean())
