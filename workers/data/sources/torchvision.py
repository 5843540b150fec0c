"""Data sets of torchvision by name, from where its own download puts them; downloaded only when that is asked for.

Only data sets with one class an image, and with files that are checked or that are plain pictures and arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workers.data import arrays, pictures
from workers.data.arrays import Part
from workers.data.digests import digests_of
from workers.data.listing import Beat, DataError, Listing
from workers.data.pictures import Pictures
from workers.data.sources.folder import stamp_of
from workers.settings import DataSettings

_TRAIN_TEST = {"train": {"split": "train"}, "test": {"split": "test"}}
_ALL = {"train": {"split": "train"}, "val": {"split": "val"}, "test": {"split": "test"}}
_FLAG = {"train": {"train": True}, "test": {"train": False}}
SPLITS_OF: dict[str, dict[str, dict[str, Any]]] = {
    "CIFAR10": _FLAG,
    "CIFAR100": _FLAG,
    "Country211": {**_TRAIN_TEST, "val": {"split": "valid"}},
    "DTD": _ALL,
    "EuroSAT": {"": {}},
    "FGVCAircraft": _ALL,
    "FashionMNIST": _FLAG,
    "Flowers102": _ALL,
    "Food101": _TRAIN_TEST,
    "GTSRB": _TRAIN_TEST,
    "Imagenette": {"train": {"split": "train"}, "val": {"split": "val"}},
    "KMNIST": _FLAG,
    "MNIST": _FLAG,
    "OxfordIIITPet": {"train": {"split": "trainval"}, "test": {"split": "test"}},
    "RenderedSST2": _ALL,
    "STL10": _TRAIN_TEST,
    "SVHN": _TRAIN_TEST,
    "USPS": _FLAG,
}
"""Name -> our split -> what its class is called with."""
_LABELS = ("targets", "labels", "_labels")
_FILES = ("_image_files", "_images", "samples", "_samples")


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """`content` covers pixels and class names, or the pictures' paths and bytes. Raises DataError."""
    beat()
    root = Path(settings.path or "").expanduser()
    found = _opened(settings.name or "", root, settings.download)
    classes = {split: _classes(dataset) for split, dataset in found.items()}
    names = _class_names(next(iter(found.values())))
    beat()
    if isinstance(getattr(next(iter(found.values())), "data", None), list | np.ndarray) or _is_tensor(found):
        parts = {
            split: Part(_pixels(dataset), classes[split], f"split {split} of {settings.name}")
            for split, dataset in found.items()
        }
        return arrays.listing(parts, settings, names)
    return _of_files(settings, root, found, classes, names, beat)


def _of_files(
    settings: DataSettings,
    root: Path,
    found: dict[str, Any],
    classes: dict[str, list[str]],
    names: Sequence[str] | None,
    beat: Beat,
) -> Listing:
    class_names = tuple(names) if names is not None else arrays.in_order(next(iter(classes.values())))
    paths = [path for dataset in found.values() for path in _paths(dataset)]
    numbers = {
        split: arrays.numbered(part, class_names, f"split {split} of {settings.name}")
        for split, part in classes.items()
    }
    listed = Pictures(
        shown=[str(path) for path in paths],
        names=[path.relative_to(root).as_posix() for path in paths],
        read=lambda position: paths[position].read_bytes(),
        labels=np.concatenate(list(numbers.values())),
        given=np.repeat(np.array(list(numbers), "U5"), [len(part) for part in numbers.values()]),
        class_names=class_names,
    )
    known = digests_of(root / f"*{settings.name}")
    kept, digests, notes = pictures.usable(
        listed, lambda position: stamp_of(paths[position]), known, settings, beat
    )
    return pictures.listing(kept, digests, settings, notes)


@lru_cache(maxsize=2)
def _opened(name: str, root: Path, download: bool) -> dict[str, Any]:
    """Its splits as torchvision has them. Raises DataError where they are not on this machine."""
    from torchvision import datasets

    if name not in SPLITS_OF:
        raise DataError(
            f"data.name: {name!r} is no data set that this source knows; there are: {', '.join(SPLITS_OF)}"
        )
    opened = {}
    for split, arguments in SPLITS_OF[name].items():
        try:
            opened[split] = _open(getattr(datasets, name), root, arguments, download)
        except (RuntimeError, OSError, ValueError, ModuleNotFoundError) as error:
            text = (" ".join(str(error).split()) or type(error).__name__)[:200]
            remedy = "mend or delete them" if download else "or set data.download: true"
            raise DataError(
                f"data.name: {name}: its files cannot be used from {root} ({text}); bring them there, {remedy}"
            ) from error
    return opened


def _open(kind: Any, root: Path, arguments: dict[str, Any], download: bool) -> Any:
    """Some classes raise where their files are there already and `download` is set."""
    try:
        return kind(root=str(root), download=False, **arguments)
    except (RuntimeError, OSError):
        if not download:
            raise
    return kind(root=str(root), download=True, **arguments)


def _is_tensor(found: dict[str, Any]) -> bool:
    return hasattr(getattr(next(iter(found.values())), "data", None), "numpy")


def _pixels(dataset: Any) -> np.ndarray:
    """uint8 [n, height, width, channels]; torchvision keeps some with the channels first."""
    data = dataset.data.numpy() if hasattr(dataset.data, "numpy") else np.asarray(dataset.data)
    if data.ndim == 4 and data.shape[1] == 3:
        data = data.transpose(0, 2, 3, 1)
    return arrays.checked(np.ascontiguousarray(data), f"data.name: {type(dataset).__name__}")


def _classes(dataset: Any) -> list[str]:
    """The class of every image, by name where there are names."""
    numbers = next((getattr(dataset, name) for name in _LABELS if hasattr(dataset, name)), None)
    if numbers is None:
        numbers = [label for _, label in dataset._samples]
    names = _class_names(dataset)
    numbers = [int(number) for number in numbers]
    return [str(number) if names is None else names[number] for number in numbers]


def _class_names(dataset: Any) -> list[str] | None:
    """Imagenette's are tuples of words for one class."""
    names = getattr(dataset, "classes", None)
    return names and [name if isinstance(name, str) else name[0] for name in names]


def _paths(dataset: Any) -> list[Path]:
    files = next(getattr(dataset, name) for name in _FILES if hasattr(dataset, name))
    return [Path(file[0] if isinstance(file, tuple) else file) for file in files]
