"""`paretovit init`: from the user's images and wishes to a search.yaml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.errors import UsageError

if TYPE_CHECKING:
    from search.starter import Place
    from workers.data.summary import DataSummary

Source = Literal["digits", "idx", "folder"]


def init(
    source: Annotated[
        Source | None,
        typer.Option("--source", help="Kind of images; guessed from --path where not given, else digits."),
    ] = None,
    path: Annotated[Path | None, typer.Option("--path", help="Folder of the images.")] = None,
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
    """Write a commented search.yaml that fits your images. On a terminal, without --path or --source, it asks."""
    from search import config, config_yaml
    from search.starter import Wish, default_name, guess_source, starter

    _check_target(to)
    limits = dict(_limit(text) for text in under or ())
    asks = source is None and path is None and sys.stdin.isatty()
    if asks:
        path = _ask_path()
    kind = source or (guess_source(path) if path else "digits")
    name = name or default_name(kind, path)
    data, note = _look(name, kind, path, image_size)
    print(_seen(data) + note)
    if asks:
        limits, deadline = _ask_limits(limits), deadline or _ask("Deadline, such as 07:00 or 8h", "none")
    wish = Wish(name, kind, _in_file(path, to), limits, deadline)
    text = starter(wish, data, _place())
    config.check_document(config_yaml.parse(text, str(to)), to.absolute().parent)
    with to.open("x", encoding="utf-8") as file:
        file.write(text)
    print(f"wrote {to}; look at it, then: paretovit validate {to} && paretovit run {to}")


def _check_target(to: Path) -> None:
    if to.exists() or to.is_symlink():
        raise UsageError(f"--to {to}: is there already, and is not overwritten; name another file with --to")
    if not to.absolute().parent.is_dir():
        raise UsageError(f"--to {to}: {to.parent} is no folder; make it, or choose another")


def _look(name: str, source: str, path: Path | None, image_size: int | None) -> tuple[DataSummary, str]:
    """What the images are, at the size that they will be brought to, and how that was chosen."""
    from search import config
    from search.validate import look_at
    from workers.data import sizes

    note = ""
    if image_size is None and source == "folder" and path is not None and path.expanduser().is_dir():
        found = sizes.sample_sizes(path.expanduser())
        if found:
            image_size = sizes.usual_size(found, largest=128 if _place().is_gpu else 64)
            note = f"; median picture {sizes.median_size(found)}, brought to {image_size} px"
    data = {"source": source}
    data |= {} if path is None else {"path": str(path)}
    data |= {} if image_size is None else {"image_size": image_size}
    return look_at(config.from_dict({"name": name, "data": data}, name="init")), note


def _seen(data: DataSummary) -> str:
    counts = ", ".join(f"{count:,} {split}" for split, count in data.num_images.items())
    return f"found {len(data.class_names)} classes; images: {counts}"


def _place() -> Place:
    from search.launch import num_workers
    from search.starter import Place
    from workers import device

    found = device.resolve("auto")
    return Place(found.name, found.is_cuda, num_workers("auto", found))


def _limit(text: str) -> tuple[str, float | str]:
    """`latency_ms=5` or `latency_ms=1.5x resnet`."""
    name, equals, bound = (part.strip() for part in text.partition("="))
    if not (name and equals and bound):
        raise UsageError(
            f"--under {text!r}: needs COST=BOUND, such as latency_ms=5 or latency_ms=1.5x resnet"
        )
    try:
        return name, float(bound)
    except ValueError:
        return name, bound


def _ask_path() -> Path | None:
    answer = _ask("Folder of your images, one folder a class", "scikit-learn's digits")
    return None if answer is None else Path(answer)


def _ask_limits(limits: dict[str, float | str]) -> dict[str, float | str]:
    if "latency_ms" in limits:
        return limits
    answer = _ask("Limit on the latency of one image: milliseconds, or 1.5x resnet", "none")
    return limits if answer is None else limits | dict([_limit(f"latency_ms={answer}")])


def _ask(question: str, default: str) -> str | None:
    """None where the user takes the default."""
    answer = str(typer.prompt(question, default=default, err=True)).strip()
    return None if answer in ("", default) else answer


def _in_file(path: Path | None, to: Path) -> str | None:
    """The images' folder as the file names it: relative to the file where it lies below it, else absolute."""
    if path is None:
        return None
    folder = path.expanduser().absolute()
    beside = to.absolute().parent
    return f"./{folder.relative_to(beside)}" if folder.is_relative_to(beside) else str(folder)
