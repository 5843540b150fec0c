"""The commented search.yaml that `paretovit init` writes, fitted to the images that it looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from search.objectives import QUANTITIES
from spaces.registry import preset_for
from workers.data.summary import DataSummary

_SMALL_IMAGE = 32
_FEW_IMAGES = 5_000


def default_name(source: str, path: Path | None, dataset: str | None = None) -> str:
    """A search name out of the data set's, the folder's or file's, or the source's."""
    called = source if path is None else path.resolve().stem if path.is_file() else path.resolve().name
    called = called if dataset is None else dataset.rpartition("/")[2]
    words = re.sub(r"[^A-Za-z0-9_-]+", "-", called).strip("-").lower()
    return words[:60] or source


def guess_source(path: Path | None, dataset: str | None = None) -> str:
    """By what is given and what lies there: a data set by name is torchvision's where there is a folder for it, else
    Hugging Face's. `digits` where nothing is given, `folder` where nothing else is seen."""
    if dataset is not None:
        return "huggingface" if path is None else "torchvision"
    if path is None:
        return "digits"
    if path.suffix.lower() == ".npz":
        return "npz"
    if (path / "dataset_info.json").is_file() or (path / "dataset_dict.json").is_file():
        return "huggingface"
    files = {"idx": "*idx3-ubyte*", "webdataset": "*.tar"}
    return next((source for source, files in files.items() if _has(path, files)), "folder")


def _has(folder: Path, pattern: str) -> bool:
    return next(folder.rglob(pattern), None) is not None


@dataclass(frozen=True)
class Wish:
    """What the user said. path: as it shall stand in the file. more: further settings of the data. limits: quantity ->
    bound, as `constraints` has it. deadline: as `search.deadline`."""

    name: str
    source: str
    path: str | None = None
    more: Mapping[str, str | bool] = field(default_factory=dict)
    limits: Mapping[str, float | str] = field(default_factory=dict)
    deadline: str | None = None


@dataclass(frozen=True)
class Place:
    """Where the search will run. device: its name, in words. workers: trainings that fit beside each other."""

    device: str
    is_gpu: bool
    workers: int


def starter(wish: Wish, data: DataSummary, place: Place) -> str:
    """The text of a search.yaml that passes `validate`."""
    small = data.image_size <= _SMALL_IMAGE
    epochs = 27 if small or data.num_images["train"] < _FEW_IMAGES else 9
    candidates = 200 if place.is_gpu else 50
    batch = 128 if data.num_images["train"] >= 20 * 128 else 32
    counts = ", ".join(f"{count:,} {split}" for split, count in data.num_images.items())
    shown = ", ".join(data.class_names[:5]) + (", ..." if len(data.class_names) > 5 else "")
    channels = "1 channel" if data.channels == 1 else f"{data.channels} channels"
    classes = f"{len(data.class_names)} classes{_comment(shown)}"
    told = {} if wish.path is None else {"path": wish.path}
    where = "".join(
        f"\n  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in {**told, **wish.more}.items()
    )
    trainings = "1 training at a time" if place.workers == 1 else f"{place.workers} trainings at a time"
    return f"""\
# A search of paretovit. Check it with `paretovit validate`, start it with `paretovit run`.
# Only name and data are needed; the rest shows its default or a value that fits these images and this machine.
name: {_text(wish.name)}

# {counts} images, {channels}, {classes}
data:
{_line(f"source: {wish.source}", "what the sources are: docs/data.md")}{where}
{_line(f"image_size: {data.image_size}", "pixels a side that images are brought to")}

# What the front trades, one to three of:
# {", ".join(QUANTITIES)}.
objectives: [accuracy, latency_ms]

# A candidate that breaks a bound on its cost is rejected before it is trained. A number, or relative to a baseline.
{_limits(wish.limits)}

space:
{_line(f"preset: {preset_for(data.image_size)}", "by image size: tiny to 48 px, small to 144, base above")}
#  families: [vit, swin, hybrid]    # all of the preset unless named
#  vit:
#    depth: [2, 4, 6]

cost:
{_line("device: auto", f"here: {_plain(place.device)}")}
{_line("batch_size: 1", "images a call for the latency")}

training:
{_line(f"epochs: {epochs}", "of a candidate that goes all the way")}
{_line(f"batch_size: {batch}", "images a step")}

search:
{_candidates(candidates, wish.deadline)}
{_line("rungs: auto", "train in stages and go on with the best; none trains all in full")}
{_deadline(wish.deadline)}
{_line("workers: auto", f"here: {trainings}")}
  seed: 0
"""


def _limits(limits: Mapping[str, float | str]) -> str:
    if not limits:
        return "# constraints:\n#   latency_ms: 1.5x resnet\n#   peak_memory_mb: 500"
    return "constraints:\n" + "\n".join(f"  {name}: {_bound(bound)}" for name, bound in limits.items())


def _bound(bound: float | str) -> str:
    return _text(bound) if isinstance(bound, str) else f"{bound:g}"


def _candidates(number: int, deadline: str | None) -> str:
    if deadline is None:
        return _line(f"max_candidates: {number}", "architectures to try")
    return _line("max_candidates: none", "as many architectures as there is time for; or a number")


def _deadline(deadline: str | None) -> str:
    comment = "or a duration, 8h; the search ends by then with what it has"
    return (
        f'#  deadline: "07:00"                # {comment}'
        if deadline is None
        else f"  deadline: {_text(deadline)}"
    )


def _text(value: str) -> str:
    """As YAML takes it back, whatever it holds."""
    return json.dumps(value, ensure_ascii=False)


def _line(setting: str, comment: str) -> str:
    return f"  {setting:<32}  # {comment}"


def _comment(shown: str) -> str:
    """Class names are the user's folders: one printable line of a comment, whatever they hold."""
    plain = _plain(shown)
    return f" ({plain[:60]}{'...' if len(plain) > 60 else ''})" if plain else ""


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
