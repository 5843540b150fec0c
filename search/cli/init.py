"""`paretovit init`: from the user's images and wishes to a search.yaml."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from search.errors import UsageError, UserError

if TYPE_CHECKING:
    from search.starter import Place
    from workers.data.summary import DataSummary

T = TypeVar("T")
Source = Literal["digits", "idx", "folder", "npz", "torchvision", "huggingface", "webdataset"]


def init(
    source: Annotated[
        Source | None,
        typer.Option("--source", help="Kind of images; guessed from --path where not given."),
    ] = None,
    path: Annotated[Path | None, typer.Option("--path", help="Folder or file of the images.")] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Name of a data set of torchvision or Hugging Face.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch it where it is not here.")] = False,
    image_column: Annotated[
        str | None, typer.Option("--image-column", help="Of a Hugging Face data set with several.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("--label-column", help="Of a Hugging Face data set with several.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the search.")] = None,
    image_size: Annotated[
        int | None,
        typer.Option("--image-size", help="Pixels a side; chosen by the images' sizes where not given."),
    ] = None,
    under: Annotated[
        list[str] | None,
        typer.Option("--under", metavar="COST=BOUND", help="A limit, such as latency_ms=5; may be repeated."),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", help='When the search has to end: "07:00", or 8h.')
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="File to write.")] = Path("search.yaml"),
) -> None:
    """Write a commented search.yaml that fits your images. On a terminal, where nothing says which, it asks."""
    from search import config, config_yaml
    from search.starter import Wish, starter

    _check_target(to)
    _check_name(name)
    limits = dict(_limit(text) for text in under or ())
    deadline = None if deadline is None else _deadline(deadline)
    told = {"name": dataset, "download": download, "image_column": image_column, "label_column": label_column}
    more = {key: value for key, value in told.items() if value}
    if source is None and path is None and not more:
        seen = _ask_images(name, image_size)
        limits, deadline = _ask_limits(limits), deadline or _ask_deadline()
    else:
        seen = _look(name, source, path, image_size, more)
        print(seen.text)
    wish = Wish(seen.name, seen.source, _in_file(seen.path, to), more, limits, deadline)
    text = starter(wish, seen.data, _place())
    config.check_document(config_yaml.parse(text, str(to)), to.absolute().parent)
    with to.open("x", encoding="utf-8") as file:
        file.write(text)
    validate, run = (shlex.join(["paretovit", command, str(to)]) for command in ("validate", "run"))
    print(f"wrote {to}; look at it, then: {validate} && {run}")


def _check_target(to: Path) -> None:
    if to.exists() or to.is_symlink():
        raise UsageError(f"--to {to}: is there already, and is not overwritten; name another file with --to")
    if not to.absolute().parent.is_dir():
        raise UsageError(f"--to {to}: {to.parent} is no folder; make it, or choose another")


@dataclass(frozen=True)
class _Seen:
    """What lies at `path` (None: scikit-learn's digits), and the name of a search on it. text: the same in words."""

    name: str
    source: str
    path: Path | None
    data: DataSummary
    text: str


def _look(
    name: str | None,
    source: str | None,
    path: Path | None,
    image_size: int | None,
    more: Mapping[str, str | bool] | None = None,
) -> _Seen:
    """The images, at the size that they will be brought to. more: further settings of the data. Raises UserError for
    what are none."""
    from search import config
    from search.starter import default_name, guess_source
    from search.validate import look_at
    from workers.data import sizes

    more = more or {}
    dataset = str(more["name"]) if "name" in more else None
    path = None if path is None else _expanded(path)
    source = source or guess_source(path, dataset)
    name = name or default_name(source, path, dataset)
    note = ""
    if image_size is None and source == "folder" and path is not None and path.is_dir():
        found = sizes.sample_sizes(path)
        if found:
            image_size = sizes.usual_size(found, largest=128 if _place().is_gpu else 64)
            note = f"; their short sides are {sizes.median_side(found):g} px by the median: brought to {image_size} px"
    settings: dict[str, Any] = {"source": source, **more}
    settings |= {} if path is None else {"path": str(path)}
    settings |= {} if image_size is None else {"image_size": image_size}
    data = look_at(config.from_dict({"name": name, "data": settings}, name="init"))
    counts = ", ".join(f"{count:,} {split}" for split, count in data.num_images.items())
    text = f"found {len(data.class_names)} classes; images: {counts}{note}"
    return _Seen(name, source, path, data, text)


def _expanded(path: Path) -> Path:
    from search.config_yaml import shown
    from workers import paths

    try:
        return paths.expanded(path)
    except ValueError as error:
        raise UsageError(f"--path {shown(str(path))}: {error}") from None


def _place() -> Place:
    from search.launch import num_workers
    from search.starter import Place
    from workers import device

    found = device.resolve("auto")
    return Place(found.name, found.is_cuda, num_workers("auto", found))


def _check_name(name: str | None) -> None:
    if name is not None:
        _check("--name", "name", {"name": name})


def _deadline(text: str) -> str:
    _check("--deadline", "search.deadline", {"search": {"deadline": text}})
    return text


def _limit(text: str) -> tuple[str, float | str]:
    """`latency_ms=5` or `latency_ms=1.5x resnet`."""
    from search.named_runtimes import base_of
    from search.objectives import QUANTITIES

    name, equals, bound = (part.strip() for part in text.partition("="))
    if not (name and equals and bound):
        raise UsageError(
            f"--under {text!r}: needs COST=BOUND, such as latency_ms=5 or latency_ms=1.5x resnet"
        )
    if base_of(name) in QUANTITIES and QUANTITIES[base_of(name)].maximise:
        raise UsageError(
            f"--under {text!r}: {name} should be high; to bound it from below, write it under constraints: in the file"
        )
    value = _number(bound)
    _check("--under", "constraints", {"constraints": {name: value}})
    return name, value


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check(flag: str, key: str, settings: Mapping[str, Any]) -> None:
    """Raises UsageError naming the flag where a config of these settings would name its file and `key`."""
    from search import config

    try:
        config.from_dict({"name": "init", "data": {"source": "digits"}, **settings}, name=flag)
    except UsageError as error:
        raise UsageError(re.sub(rf"(?<={flag}: ){re.escape(key)}(\.|: )", "", str(error))) from None


def _ask_images(name: str | None, image_size: int | None) -> _Seen:
    if not sys.stdin.isatty():
        raise UsageError("init: no terminal to ask on; give --path FOLDER, or --source digits")

    def look(answer: str | None) -> _Seen:
        seen = _look(name, None, None if answer is None else Path(answer), image_size)
        print(seen.text)
        return seen

    return _ask("Folder of your images, one folder a class", "scikit-learn's digits", look)


def _ask_limits(limits: dict[str, float | str]) -> dict[str, float | str]:
    if "latency_ms" in limits:
        return limits
    question = "Limit on the latency of one image: milliseconds, or 1.5x resnet"
    asked = _ask(question, "none", lambda answer: () if answer is None else (_limit(f"latency_ms={answer}"),))
    return limits | dict(asked)


def _ask_deadline() -> str | None:
    question = "Deadline, such as 07:00 or 8h"
    return _ask(question, "none", lambda answer: None if answer is None else _deadline(answer))


def _ask(question: str, default: str, take: Callable[[str | None], T]) -> T:
    """What `take` makes of the answer, of None where the user takes the default. What it refuses is asked again."""
    while True:
        answer = str(typer.prompt(question, default=default, err=True)).strip()
        if answer in ("", default):
            return take(None)
        try:
            return take(answer)
        except UserError as error:
            print(error, file=sys.stderr)


def _in_file(path: Path | None, to: Path) -> str | None:
    """The images' folder as the file names it: relative to the file where it lies below it, else absolute."""
    if path is None:
        return None
    folder = path.absolute()
    beside = to.absolute().parent
    if not folder.is_relative_to(beside):
        return str(folder)
    relative = folder.relative_to(beside)
    return str(relative) if relative.parts[:1] in ((), ("..",)) else f"./{relative}"
