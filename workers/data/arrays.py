"""Sources that hold their images as arrays, by split; classes are matched by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workers.data import pixels
from workers.data.listing import SPLITS, DataError, Listing
from workers.settings import DataSettings

ALIASES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}
"""Names of splits -> ours."""


@dataclass(frozen=True)
class Part:
    """One split. images: uint8 [n, height, width, 1 or 3]. classes: the name of each image's class. where: what a user
    knows it by."""

    images: np.ndarray
    classes: Sequence[str]
    where: str


def listing(parts: Mapping[str, Part], settings: DataSettings, names: Sequence[str] | None = None) -> Listing:
    """parts: by split; "" for images that are not split. names: all classes in their order; else those of the training
    images, sorted, as numbers where all are. Raises DataError."""
    class_names = tuple(names) if names is not None else in_order(next(iter(parts.values())).classes)
    labels = {split: numbered(part.classes, class_names, part.where) for split, part in parts.items()}
    shapes = {part.images.shape[1:]: part.where for part in parts.values()}
    if len(shapes) > 1:
        raise DataError(f"data.path: images differ in shape: {shapes}; bring them to one")
    images = np.concatenate([part.images for part in parts.values()])
    size = settings.image_size or min(images.shape[1:3])
    digest = hashlib.sha256(repr((images.shape, class_names)).encode())
    digest.update(np.ascontiguousarray(images).data)
    return Listing(
        class_names=class_names,
        labels=np.concatenate(list(labels.values())),
        given=np.repeat(np.array(list(parts), "U5"), [len(part.images) for part in parts.values()]),
        image_size=size,
        channels=images.shape[3],
        content=digest.hexdigest(),
        decode=lambda indices, beat: pixels.fit(images[indices], size, beat),
        is_costly=images.shape[1:3] != (size, size),
    )


def in_order(classes: Sequence[str]) -> tuple[str, ...]:
    """Every class once. Raises DataError for fewer than two."""
    found = set(classes)
    if len(found) < 2:
        raise DataError(
            f"data: the training images know one class only ({''.join(found)}); there is nothing to tell apart"
        )
    are_numbers = all(name.isdecimal() for name in found)
    return tuple(sorted(found, key=(lambda name: (int(name), name)) if are_numbers else None))


def numbered(classes: Sequence[str], class_names: Sequence[str], where: str) -> np.ndarray:
    """int64: position of each in class_names. Raises DataError naming the classes that are not among them."""
    position = {name: number for number, name in enumerate(class_names)}
    unknown = sorted(set(classes) - position.keys())
    if unknown:
        shown = ", ".join(repr(name) for name in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        raise DataError(
            f"data: {where} holds classes that the training images lack: {shown}; rename or remove them"
        )
    return np.array([position[name] for name in classes], np.int64)


def by_split(parts: Mapping[str, Part], where: str) -> dict[str, Part]:
    """Parts by our names of splits, in their order; a single one is not split. Raises DataError."""
    if len(parts) == 1 and next(iter(parts)) not in ("val", "test"):
        return {"": next(iter(parts.values()))}
    if "" in parts:
        raise DataError(
            f"data: {where} holds images of no split beside those of {', '.join(parts.keys() - {''})}"
        )
    if "train" not in parts:
        raise DataError(
            f"data: {where} holds {', '.join(sorted(parts))}, but no training split; name one `train`"
        )
    return {split: parts[split] for split in SPLITS if split in parts}


def checked(images: np.ndarray, where: str) -> np.ndarray:
    """uint8 [n, height, width, 1 or 3], from [n, height, width] too. Raises DataError saying what is wrong."""
    if images.dtype != np.uint8:
        raise DataError(f"{where}: holds {images.dtype}; store pixels as uint8, 0 to 255")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        raise DataError(
            f"{where}: has shape {images.shape}, channels first; transpose to (n, height, width, channels)"
        )
    if images.ndim != 4 or images.shape[3] not in (1, 3) or min(images.shape) == 0:
        raise DataError(
            f"{where}: has shape {images.shape}; needs (n, height, width) or (n, height, width, 1 or 3)"
        )
    return images
