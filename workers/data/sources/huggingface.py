"""Data sets of Hugging Face: by name from its cache or hub, or from a folder that `save_to_disk` wrote.

The package `datasets` is an extra. Nothing is fetched unless that is asked for, and no code of a data set is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workers.data import arrays, pictures
from workers.data.arrays import ALIASES
from workers.data.digests import digests_of
from workers.data.listing import Beat, DataError, Listing
from workers.data.pictures import Pictures
from workers.settings import DataSettings

_REMEDY = "pip install 'paretovit[data]'"


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """`content` covers names of splits, positions and the images' bytes as they are stored. Raises DataError."""
    beat()
    found = _opened(settings.name, settings.path, settings.download)
    beat()
    what = settings.name or settings.path or ""
    first = next(iter(found.values()))
    image, label = _columns(first, settings, what)
    classes = {split: _classes(part, label, f"split {split} of {what}") for split, part in found.items()}
    names = getattr(first.features[label], "names", None)
    class_names = tuple(names) if names else arrays.in_order(next(iter(classes.values())))
    labels = [
        arrays.numbered(part, class_names, f"split {split} of {what}") for split, part in classes.items()
    ]
    tables = [_encoded(part, image) for part in found.values()]
    ends = np.cumsum([len(table) for table in tables])
    names_of_pictures = [
        f"{split}/{number}" for split, part in classes.items() for number in range(len(part))
    ]

    def stored(position: int) -> bytes:
        table = int(np.searchsorted(ends, position, "right"))
        return _bytes(tables[table][position - (int(ends[table - 1]) if table else 0)][image])

    listed = Pictures(
        shown=[f"{what}:{name}" for name in names_of_pictures],
        names=names_of_pictures,
        read=stored,
        labels=np.concatenate(labels),
        given=np.repeat(np.array(list(classes), "U5"), [len(part) for part in classes.values()]),
        class_names=class_names,
    )
    version = hashlib.sha256("/".join(part._fingerprint for part in found.values()).encode()).digest()
    stamp = (int.from_bytes(version[:7], "big"), 0)
    known = digests_of(Path(f"huggingface:{what}"))
    kept, digests, notes = pictures.usable(listed, lambda _: stamp, known, settings, beat)
    return pictures.listing(kept, digests, settings, notes)


@lru_cache(maxsize=2)
def _opened(name: str | None, path: str | None, download: bool) -> dict[str, Any]:
    """Our split, or the empty name -> the data set's."""
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DataError(f"data.source: huggingface needs the package datasets; {_REMEDY}") from error
    datasets.disable_progress_bars()
    try:
        if path is not None:
            found = datasets.load_from_disk(str(Path(path).expanduser()))
        else:
            fetch = datasets.DownloadConfig(local_files_only=not download)
            with nullcontext() if download else _without_network():
                found = datasets.load_dataset(name or "", download_config=fetch)
    except (OSError, ValueError, RuntimeError) as error:
        text = (" ".join(str(error).split()) or type(error).__name__)[:200]
        if path is not None:
            raise DataError(
                f"data.path: {path}: is no folder that save_to_disk wrote ({text}); write it again"
            ) from error
        remedy = "check the name" if download else "set data.download: true to fetch it, or check the name"
        raise DataError(f"data.name: {name}: cannot be loaded ({text}); {remedy}") from error
    if not isinstance(found, dict):
        return {"": found}
    return _by_split({str(split): part for split, part in found.items()}, name or path or "")


@contextmanager
def _without_network() -> Iterator[None]:
    """What is not here is not asked for: with a hub that does not answer, that took half a minute."""
    from datasets import config  # pyright: ignore[reportMissingImports]
    from huggingface_hub import constants

    places: tuple[Any, ...] = (config, constants)
    before = [place.HF_HUB_OFFLINE for place in places]
    for place in places:
        place.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = value


def _by_split(found: dict[str, Any], what: str) -> dict[str, Any]:
    named = {}
    for split, part in found.items():
        if split.lower() in ALIASES:
            if ALIASES[split.lower()] in named:
                raise DataError(
                    f"data: {what} has two splits for {ALIASES[split.lower()]}: {', '.join(found)}; remove one"
                )
            named[ALIASES[split.lower()]] = part
    if "train" not in named:
        raise DataError(f"data: {what} has splits {', '.join(found)}, but none called train; rename one")
    if set(named) == {"train"}:
        return {"": named["train"]}
    return {split: named[split] for split in ("train", "val", "test") if split in named}


def _columns(part: Any, settings: DataSettings, what: str) -> tuple[str, str]:
    """Of images and of classes: those that are named, else the only ones of their kind."""
    import datasets  # pyright: ignore[reportMissingImports]

    features = part.features
    kinds = {"image": datasets.Image, "label": datasets.ClassLabel}
    chosen = []
    for kind, wanted in (("image", settings.image_column), ("label", settings.label_column)):
        fitting = [name for name, feature in features.items() if isinstance(feature, kinds[kind])]
        if wanted is None and len(fitting) != 1 and kind in features:
            fitting = [kind]
        if wanted is not None and wanted not in features:
            raise DataError(
                f"data.{kind}_column: {wanted!r} is no column of {what}; there are: {', '.join(features)}"
            )
        if wanted is None and len(fitting) != 1:
            raise DataError(
                f"data.{kind}_column: {what} does not say which column it is; name one of: {', '.join(features)}"
            )
        chosen.append(wanted or fitting[0])
    if not isinstance(features[chosen[0]], datasets.Image):
        raise DataError(f"data.image_column: {chosen[0]!r} of {what} holds no images; name another column")
    return chosen[0], chosen[1]


def _classes(part: Any, label: str, where: str) -> list[str]:
    """The class of every image by name, so that splits that number classes otherwise agree."""
    values = list(part[label])
    names = getattr(part.features[label], "names", None)
    if names is not None:
        if any(value is None or value < 0 for value in values):
            raise DataError(f"data: {where} has images without a class in column {label!r}; leave them out")
        return [names[value] for value in values]
    if not all(isinstance(value, str | int) for value in values):
        raise DataError(
            f"data.label_column: {label!r} of {where} holds neither names nor numbers; name another column"
        )
    return [str(value) for value in values]


def _encoded(part: Any, image: str) -> Any:
    """The column of images, as they are stored."""
    import datasets  # pyright: ignore[reportMissingImports]

    return part.select_columns([image]).cast_column(image, datasets.Image(decode=False))


def _bytes(stored: Any) -> bytes:
    if stored is None:
        return b""
    return stored["bytes"] if stored["bytes"] is not None else Path(stored["path"]).read_bytes()
