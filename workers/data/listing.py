"""What a source of images holds, known before any picture is decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SPLITS = ("train", "val", "test")

Beat = Callable[[], object]
"""Called between pieces of long work, so that a guard against hangs can be re-armed."""


class DataError(ValueError):
    """The user's images cannot be used. The message names the file or setting and the remedy."""


@dataclass(frozen=True)
class Listing:
    """All images of a source in a fixed order, as labels and a way to decode them.

    labels: int64 [n], positions in class_names.
    given: str [n], the split that the source puts an image in (`train`, `val`, `test`), "" where it does not say.
    image_size: side in pixels of decoded images.
    content: hexadecimal SHA-256 of what is stored (see the source for what exactly), without decoding it.
    decode(indices, beat): uint8 [len(indices), image_size, image_size, channels]; raises DataError.
    is_costly: decoding takes so long that it is worth doing once for all.
    notes: what was left out of it, each in words for the user.
    """

    class_names: tuple[str, ...]
    labels: np.ndarray
    given: np.ndarray
    image_size: int
    channels: int
    content: str
    decode: Callable[[np.ndarray, Beat], np.ndarray]
    is_costly: bool = False
    notes: tuple[str, ...] = ()
