"""Which image belongs to which split: stratified by class, drawn from a seed, with a digest."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from workers.data.listing import SPLITS, DataError, Listing
from workers.settings import DataSettings

Splits = dict[str, np.ndarray]
"""train, val and test, each int64 positions in the listing, ascending."""


def assign(listing: Listing, settings: DataSettings) -> Splits:
    """Splits of a listing: the source's own where it has them, else drawn from its training images.

    Of every class, val and test get their fraction (at least one image). Limits keep the classes' shares.
    Raises DataError naming a class with too few images, or a limit below the number of classes.
    """
    splits = {name: np.flatnonzero(listing.given == name) for name in SPLITS}
    pool = np.flatnonzero((listing.given == "") | (listing.given == "train"))
    fractions = {"val": settings.val_fraction, "test": settings.test_fraction}
    wanted = {name: fraction for name, fraction in fractions.items() if not len(splits[name])}
    splits |= _draw(listing, pool, wanted, settings)
    for name, limit in (("train", settings.train_limit), ("val", settings.val_limit)):
        if limit is not None:
            splits[name] = _limited(listing, splits[name], name, limit, _generator(settings, name))
    return splits


def digest(listing: Listing, splits: Splits) -> str:
    """32 hexadecimal digits of the SHA-256 of what training and validation read.

    Covers the stored images (`Listing.content`), the size they are decoded at, class names, labels and the
    positions in every split. Nothing is decoded for it, so that `summarise` and `load` share this definition.
    """
    head = json.dumps([listing.content, listing.image_size, listing.channels, listing.class_names])
    value = hashlib.sha256(head.encode())
    for part in (listing.labels, *(splits[name] for name in SPLITS)):
        value.update(f"|{len(part)}|".encode())
        value.update(np.ascontiguousarray(part, "<i8").tobytes())
    return value.hexdigest()[:32]


def _draw(listing: Listing, pool: np.ndarray, wanted: dict[str, float], settings: DataSettings) -> Splits:
    generator = _generator(settings, "splits")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("train", *wanted)}
    for label, class_name in enumerate(listing.class_names):
        members = generator.permutation(pool[listing.labels[pool] == label])
        if len(members) <= len(wanted):
            needed = " and ".join(("train", *wanted))
            raise DataError(
                f"data: class {class_name!r} has {len(members)} image{'s' * (len(members) != 1)}, too few for"
                f" {needed}; add images or remove the class"
            )
        start = 0
        for position, (name, fraction) in enumerate(wanted.items()):
            spare = (
                len(members) - start - (len(wanted) - position)
            )  # what follows needs an image each, and so does train
            count = min(max(1, round(len(members) * fraction)), spare)
            parts[name].append(members[start : start + count])
            start += count
        parts["train"].append(members[start:])
    return {name: np.sort(np.concatenate(chosen)) for name, chosen in parts.items()}


def _limited(
    listing: Listing, members: np.ndarray, split: str, limit: int, generator: np.random.Generator
) -> np.ndarray:
    labels = listing.labels[members]
    counts = np.bincount(labels, minlength=len(listing.class_names))
    num_present = int((counts > 0).sum())
    if limit >= len(members):
        return members
    if limit < num_present:
        raise DataError(
            f"data.{split}_limit: {limit} is below the number of classes; use {num_present} or more"
        )
    chosen = [
        generator.permutation(members[labels == label])[:count]
        for label, count in enumerate(_shares(counts, limit))
    ]
    return np.sort(np.concatenate(chosen))


def _shares(counts: np.ndarray, total: int) -> np.ndarray:
    """`total` shared out by counts, at least one to every class that is there; largest remainders."""
    quota = counts * (total / counts.sum())
    shares = np.maximum(np.floor(quota).astype(int), (counts > 0).astype(int))
    while shares.sum() < total:
        shares[np.argmax(np.where(shares < counts, quota - shares, -np.inf))] += 1
    while shares.sum() > total:
        shares[np.argmax(np.where(shares > 1, shares - quota, -np.inf))] -= 1
    return shares


def _generator(settings: DataSettings, purpose: str) -> np.random.Generator:
    return np.random.default_rng([settings.seed, *purpose.encode()])
