"""`export` and `verify`: a trained model as a folder, and that folder checked again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import Database, Json

if TYPE_CHECKING:
    from workers.bundle.export import Exported
    from workers.bundle.verify import Verified


def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The search.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Its number, or a baseline's name.")],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="A folder that is new or empty.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also write model.onnx; needs the extra `export`.")
    ] = False,
    without_images: Annotated[
        bool, typer.Option("--without-images", help="Bring no validation images along, to check with.")
    ] = False,
    db: Database = None,
) -> None:
    """Export a trained model: a folder that needs torch and timm alone."""
    from functools import partial

    from search import export as exports
    from search.cli import model_card
    from search.cli.reading import reading
    from search.store.read.searches import search_by_name

    with reading(db) as reader:
        search = search_by_name(reader, name)
        wanted = exports.prepare(reader, search, candidate, onnx=onnx, images=not without_images)
    exported = exports.write(wanted, to, partial(model_card.text, wanted))
    for line in _exported(wanted.label, exported):
        typer.echo(line)


def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `export` made.")],
    as_json: Json = False,
) -> None:
    """Check an exported folder: every file, and that the model still gives the same scores."""
    from search import export as exports
    from search.cli.reading import print_json

    verified = exports.verify(folder)
    if as_json:
        shown = ("folder", "files", "num_images", "differences", "tolerance", "versions")
        print_json({name: getattr(verified, name) for name in shown})
    else:
        typer.echo(f"{folder}: {_checked(verified)}")


def _exported(label: str, exported: Exported) -> list[str]:
    from dashboards.words import printable, significant

    verified, missing = exported.verified, exported.contents.sample.missing
    megabytes = sum(path.stat().st_size for path in exported.folder.iterdir()) / 1e6
    lines = [
        f"{label}: exported to {exported.folder}, {len(verified.files)} files, {significant(megabytes)} MB",
        f"checked: {_checked(verified)}",
    ]
    if missing is not None:
        lines.append(f"the sample holds no validation images but noise: {missing}")
    return [printable(line) for line in lines]


def _checked(verified: Verified) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in verified.versions.items())
    differences = ", ".join(f"{name} {difference:.2g}" for name, difference in verified.differences.items())
    return (
        f"{len(verified.files)} files as in the manifest; run in a process of its own ({versions}) on the sample of "
        f"{verified.num_images} images, scores differ from the stored ones by at most: {differences} "
        f"({verified.tolerance:.2g} is allowed)"
    )
