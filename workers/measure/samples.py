"""The single timings behind a median, as few bytes: to be drawn, and compared with others later. Standard library only.

Little-endian 32-bit floats, compressed by zlib; at most 2,000, so 8 kB, evenly drawn where there were more.
"""

from __future__ import annotations

import array
import base64
import sys
import zlib
from collections.abc import Sequence

MAX_SAMPLES = 2_000
_SIZE = 4


def pack(samples: Sequence[float]) -> bytes:
    """Milliseconds in the order in which they were taken, to within one part in ten million."""
    kept = samples
    if len(samples) > MAX_SAMPLES:
        kept = [samples[place * len(samples) // MAX_SAMPLES] for place in range(MAX_SAMPLES)]
    return zlib.compress(_little_endian(array.array("f", kept)).tobytes(), 9)


def unpack(packed: bytes) -> tuple[float, ...]:
    """What `pack` was given. Raises ValueError for anything that it did not make."""
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(packed, MAX_SAMPLES * _SIZE + 1)
    except zlib.error as error:
        raise ValueError(f"no packed samples: {error}") from None
    if len(content) > MAX_SAMPLES * _SIZE or len(content) % _SIZE or not reader.eof:
        raise ValueError("no packed samples: cut short, or more than there can be")
    return tuple(_little_endian(array.array("f", content)))


def to_text(packed: bytes) -> str:
    """For JSON."""
    return base64.b64encode(packed).decode()


def from_text(text: str) -> bytes:
    """What `to_text` was given. Raises ValueError for anything else."""
    return base64.b64decode(text, validate=True)


def _little_endian(values: array.array[float]) -> array.array[float]:
    if sys.byteorder == "big":
        values = array.array("f", values)
        values.byteswap()
    return values
