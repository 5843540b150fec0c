"""Encoded pictures that a source can read one by one: what is wrong with them, their digests, their pixels."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.data import pixels
from workers.data.bad import Bad, note, refuse
from workers.data.digests import Digests, Known, Stamp
from workers.data.listing import Beat, DataError, Listing
from workers.settings import DataSettings

DEFAULT_IMAGE_SIZE = 64


@dataclass(frozen=True)
class Pictures:
    """shown: what a user knows a picture by. names: what the digest of the source knows it by, the same for a copy
    elsewhere. read(position): its bytes; OSError. labels, given: as in a Listing. class_names: of the labels."""

    shown: list[str]
    names: list[str]
    read: Callable[[int], bytes]
    labels: np.ndarray
    given: np.ndarray
    class_names: tuple[str, ...]

    def chosen(self, positions: np.ndarray) -> Pictures:
        """Some of them."""
        return Pictures(
            [self.shown[position] for position in positions],
            [self.names[position] for position in positions],
            lambda position: self.read(int(positions[position])),
            self.labels[positions],
            self.given[positions],
            self.class_names,
        )


def usable(
    pictures: Pictures,
    stamp: Callable[[int], Stamp],
    digests: Digests,
    settings: DataSettings,
    beat: Beat,
) -> tuple[Pictures, list[bytes], list[str]]:
    """Those that can be used, their SHA-256, and what is said of the others; reads what is not known from before.

    stamp(position): changes when the picture may have. Raises DataError for more bad ones than settings.max_bad.
    """
    known = _known(pictures, stamp, digests, settings.max_bad > 0, beat)
    bad = [Bad(shown, one.fault) for shown, one in zip(pictures.shown, known, strict=True) if one.fault]
    refuse(bad, settings.max_bad)
    if not bad:
        return pictures, [one.digest for one in known], []
    kept = np.array([position for position, one in enumerate(known) if not one.fault], np.int64)
    found = [one.digest for one in known if not one.fault]
    return pictures.chosen(kept), found, [note(bad, settings.max_bad)]


def listing(
    pictures: Pictures, digests: Sequence[bytes], settings: DataSettings, notes: Sequence[str] = ()
) -> Listing:
    """`content` covers the names and the bytes of the pictures."""
    size = settings.image_size or DEFAULT_IMAGE_SIZE
    content = hashlib.sha256()
    for name, digest in zip(pictures.names, digests, strict=True):
        content.update(f"{name}\0".encode("utf-8", "surrogateescape"))
        content.update(digest)
    return Listing(
        class_names=pictures.class_names,
        labels=pictures.labels,
        given=pictures.given,
        image_size=size,
        channels=3,
        content=content.hexdigest(),
        decode=lambda indices, beat: _decode(pictures, indices, size, beat),
        is_costly=True,
        notes=tuple(notes),
    )


def _known(
    pictures: Pictures, stamp: Callable[[int], Stamp], digests: Digests, whole: bool, beat: Beat
) -> list[Known]:
    def look(position: int) -> Known:
        name = pictures.names[position]
        try:
            marked = stamp(position)
            known = digests.get(name, marked, whole)
            if known is None:
                data = pictures.read(position)
                known = Known(hashlib.sha256(data).digest(), whole, pixels.fault(data, whole))
                digests.put(name, marked, known)
        except OSError as error:
            raise DataError(
                f"{pictures.shown[position]}: cannot be read ({error.strerror or error}); mend or remove it"
            ) from error
        return known

    try:
        return list(pixels.in_threads(look, range(len(pictures.names)), beat))
    finally:
        digests.save(pictures.names)


def _decode(pictures: Pictures, indices: np.ndarray, size: int, beat: Beat) -> np.ndarray:
    decoded = np.empty((len(indices), size, size, 3), np.uint8)

    def decode(position: int) -> Bad | None:
        index = int(indices[position])
        try:
            decoded[position] = pixels.decode(io.BytesIO(pictures.read(index)), size)
        except PermissionError as error:
            raise DataError(f"{pictures.shown[index]}: permission denied; make the file readable") from error
        except pixels.UNREADABLE as error:
            return Bad(pictures.shown[index], pixels.reason(error))
        return None

    refuse([bad for bad in pixels.in_threads(decode, range(len(indices)), beat) if bad], max_bad=0)
    return decoded
