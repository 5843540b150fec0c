"""The folder that a search keeps its files in, and what says that it is that search's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from search.errors import UserError
from search.store.location import locate

if TYPE_CHECKING:
    from search.config import SearchConfig
    from search.store.read.rows import SearchRow

MARKER = ".search"


def new(config: SearchConfig, db: str | None) -> Path:
    """Where a new search will keep its files. Raises UsageError where others are there, or where images are."""
    root = Path(config.artifacts) if config.artifacts else locate(db).artifacts_root
    folder = (root / config.name).absolute()
    if folder.is_dir() and any(folder.iterdir()):
        what = "belongs to a search of another database" if (folder / MARKER).exists() else "is not empty"
        raise config.error(
            "artifacts", f"{folder} {what}; move it away, or give the search another folder or name"
        )
    refuse_among_images(config, folder)
    return folder


def refuse_among_images(config: SearchConfig, folder: Path) -> None:
    """Raises UsageError where a search's folder would lie in that of its images, and be read as some of them."""
    images = config.data.path
    if images is not None and folder.resolve().is_relative_to(Path(images).resolve()):
        remedy = (
            "give artifacts: another folder" if config.artifacts else "give artifacts: or --db another place"
        )
        raise config.error("artifacts", f"{folder} would lie among the images of {images}; {remedy}")


def of_report(row: SearchRow, db: str | None) -> Path:
    """Where a report is written that is asked for without a place: beside the database that it is read from, which may
    be a copy of that which the search began in."""
    location = locate(db)
    if location.path is None or row.config.get("artifacts"):
        return Path(row.artifacts)
    return location.artifacts_root / row.name


def claim(artifacts: Path, row: SearchRow) -> None:
    """Makes the search's folder, and refuses one that another search writes to, as two databases could have it."""
    marker = artifacts / MARKER
    mine = f"{row.name} {row.created!r}\n"
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"artifacts: {artifacts}: cannot be made ({error.strerror}); give `artifacts:` another folder"
        ) from error
    if marker.exists() and marker.read_text() != mine:
        raise UserError(
            f"artifacts: {artifacts} belongs to a search of that name in another database; "
            "give `artifacts:` another folder"
        )
    marker.write_text(mine)
