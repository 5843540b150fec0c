"""What a user should know of the images before a search begins: what is left out, classes, duplicates, size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workers.data import dataset, duplicates
from workers.data.dataset import Index
from workers.data.duplicates import Overlap
from workers.data.listing import SPLITS, Beat, DataError
from workers.settings import DataSettings

MOST_DECODED = 50_000
"""Pictures that are decoded for a look at them; of more, as many are looked at, spread over the splits."""
MOST_COMPARED = 200_000
"""The same where they are decoded already."""
WORRYING_SHARE = 0.001
UNEVEN = 3
"""Times that one class has the images of another, from which on that is told."""
_MB = 1_000_000


@dataclass(frozen=True)
class Inspection:
    """notes: what is as it may be. warnings: what is likely to mislead. Each is a line for the user."""

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def inspect(found: Index, settings: DataSettings, beat: Beat = lambda: None) -> Inspection:
    """Looks at classes and at decoded pixels, all of them unless they are very many.

    Decoding them fills the cache and finds truncated pictures. Raises DataError for a picture that cannot be used and
    for a class with a single image to learn from.
    """
    _check_classes(found)
    uneven = _unevenness(found, settings.balance)
    pixels, kept, sampled = _pixels(found, beat)
    overlaps = duplicates.overlaps(pixels, beat)
    notes = [*found.listing.notes, kept, *uneven]
    if sampled:
        notes.append(f"duplicates were looked for among {sampled} images")
    notes += [_told(overlap) for overlap in overlaps if 0 < overlap.share <= WORRYING_SHARE]
    warnings = [_told(overlap) for overlap in overlaps if overlap.share > WORRYING_SHARE]
    return Inspection(tuple(notes), tuple(warnings))


def _check_classes(found: Index) -> None:
    listing = found.listing
    learnt = (listing.given == "") | (listing.given == "train")
    counts = np.bincount(listing.labels[learnt], minlength=len(listing.class_names))
    for name, count in zip(listing.class_names, counts, strict=True):
        if count == 1:
            raise DataError(f"data: class {name!r} has 1 image to learn from; add images or remove the class")


def _unevenness(found: Index, balance: str) -> list[str]:
    listing = found.listing
    counts = np.bincount(listing.labels[found.splits["train"]], minlength=len(listing.class_names))
    least, most = int(counts.argmin()), int(counts.argmax())
    if balance != "none":
        if counts[most] == counts[least]:
            raise DataError(
                f"data.balance: {balance}: every class has {counts[most]:,} training images already; remove it"
            )
        return []
    if counts[most] < UNEVEN * counts[least]:
        return []
    few, many = listing.class_names[least], listing.class_names[most]
    return [
        f"classes are uneven: {counts[least]:,} training images of {few!r}, {counts[most]:,} of {many!r}; "
        "data.balance: sampler or loss makes them count alike"
    ]


def _pixels(found: Index, beat: Beat) -> tuple[dict[str, np.ndarray], str, str]:
    """Pixels to be looked at by split, what is kept of them and where, and how many of how many where not all."""
    count = found.shape[0]
    size = f"{found.num_bytes / _MB:,.0f} MB of pixels" if found.num_bytes >= _MB else "under 1 MB of pixels"
    if found.listing.is_costly and count > MOST_DECODED:
        chosen = {name: _spread(found.splits[name], count, MOST_DECODED) for name in SPLITS}
        pixels = {name: found.listing.decode(positions, beat) for name, positions in chosen.items()}
        return pixels, f"{size}, decoded when training begins", _of(pixels, count)
    data = dataset.decode(found, beat)
    pixels = {name: images.pixels for name, images in data.splits.items()}
    kept = (
        f"{size}, decoded once and kept in {data.cached.parent}" if data.cached else f"{size}, kept in memory"
    )
    kept += f", because {data.uncached}" if data.uncached else ""
    if count > MOST_COMPARED:
        pixels = {
            name: part[_spread(np.arange(len(part)), count, MOST_COMPARED)] for name, part in pixels.items()
        }
        return pixels, kept, _of(pixels, count)
    return pixels, kept, ""


def _spread(positions: np.ndarray, total: int, most: int) -> np.ndarray:
    """A share most / total of them, evenly spread: of classes and files in their order."""
    step = -(-total // most)
    return positions[::step]


def _of(pixels: dict[str, np.ndarray], total: int) -> str:
    return f"{sum(map(len, pixels.values())):,} of {total:,}"


def _told(overlap: Overlap) -> str:
    return (
        f"{overlap.share:.2%} of the {overlap.inside} images are in {overlap.other} too: {overlap.exact:,} the same "
        f"pixels, {overlap.near:,} nearly"
    )
