"""The commented search.yaml that `paretovit init` writes, fitted to the images that it looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path

from search.objectives import QUANTITIES
from spaces.registry import preset_for
from workers.data.summary import DataSummary

_SMALL_IMAGE = 32
_FEW_IMAGES = 5_000


def default_name(source: str, path: Path | None) -> str:
    """A search name out of the folder's, or the source's."""
    words = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().name if path else source).strip("-").lower()
    return words[:60] or source


def guess_source(path: Path) -> str:
    """`idx` where MNIST-format files lie below `path`, else `folder`."""
    return "idx" if next(path.rglob("*idx3-ubyte*"), None) is not None else "folder"


def starter(name: str, source: str, path: str | None, data: DataSummary) -> str:
    """The text of a search.yaml that passes `validate`. path: as it shall stand in the file."""
    small = data.image_size <= _SMALL_IMAGE
    epochs = 27 if small or data.num_images["train"] < _FEW_IMAGES else 9
    candidates = 50 if small else 100
    counts = ", ".join(f"{count:,} {split}" for split, count in data.num_images.items())
    shown = ", ".join(data.class_names[:5]) + (", ..." if len(data.class_names) > 5 else "")
    channels = "1 channel" if data.channels == 1 else f"{data.channels} channels"
    classes = f"{len(data.class_names)} classes{_comment(shown)}"
    where = "" if path is None else f"\n  path: {json.dumps(path, ensure_ascii=False)}"
    return f"""\
# A search of paretovit. Check it with `paretovit validate`, start it with `paretovit run`.
# Only name and data are needed; the rest shows its default or a value that fits these images.
name: {json.dumps(name)}

# {counts} images, {channels}, {classes}
data:
{_line(f"source: {source}", "digits | idx (MNIST-format files) | folder (one folder a class)")}{where}
{_line(f"image_size: {data.image_size}", "pixels a side that images are brought to")}

# What the front trades, one to three of:
# {", ".join(QUANTITIES)}.
objectives: [accuracy, latency_ms]

# A candidate that breaks a bound is rejected before it is trained. A number, or relative to a baseline:
# constraints:
#   latency_ms: 1.5x resnet
#   peak_memory_mb: 500

space:
{_line(f"preset: {preset_for(data.image_size)}", "tiny for small images, small for larger ones")}
#  families: [vit, swin, hybrid]    # all of the preset unless named
#  vit:
#    depth: [2, 4, 6]

cost:
{_line("device: auto", "the first GPU, else the CPU")}
{_line("batch_size: 1", "images a call for the latency")}

training:
{_line(f"epochs: {epochs}", "of a candidate that goes all the way")}
{_line("batch_size: 128", "images a step")}

search:
{_line(f"max_candidates: {candidates}", "architectures to try")}
{_line("rungs: auto", "train in stages and go on with the best; none trains all in full")}
#  deadline: "07:00"                # or a duration, 8h; the search ends by then with what it has
{_line("workers: auto", "trainings at a time")}
  seed: 0
"""


def _line(setting: str, comment: str) -> str:
    return f"  {setting:<32}  # {comment}"


def _comment(shown: str) -> str:
    """Class names are the user's folders: one printable line of a comment, whatever they hold."""
    plain = "".join(character if character.isprintable() else "?" for character in shown)
    return f" ({plain[:60]}{'...' if len(plain) > 60 else ''})" if plain else ""
