"""Where a database is: a path or URL, as SQLite, psycopg and SQLAlchemy read it. Standard library only."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from search.errors import UsageError, UserError
from workers import paths

VARIABLE = "PARETOVIT_DB"
DEFAULT = "paretovit.db"
NETWORK_TYPES = (
    "nfs",
    "nfs4",
    "cifs",
    "smb",
    "smb2",
    "smb3",
    "smbfs",
    "afpfs",
    "afs",
    "ncpfs",
    "webdav",
    "davfs",
)
NETWORK_TYPES += (
    "9p",
    "ceph",
    "glusterfs",
    "lustre",
    "beegfs",
    "gpfs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
)
NETWORK_TYPES += ("fuse.rclone", "fuse.ceph", "fuse.gcsfuse", "fuse.davfs2", "macfuse", "osxfuse")


@dataclass(frozen=True)
class Location:
    """One database. path: of the SQLite file, absolute; None for PostgreSQL. url: as SQLAlchemy reads it."""

    url: str
    path: Path | None

    @property
    def is_sqlite(self) -> bool:
        return self.path is not None

    @property
    def conninfo(self) -> str:
        """The PostgreSQL URI as psycopg reads it."""
        return self.url.replace("postgresql+psycopg://", "postgresql://", 1)

    @property
    def label(self) -> str:
        """For messages: the file, or the URL without its password."""
        if self.path is not None:
            return str(self.path)
        parts = urlsplit(self.conninfo)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
        return f"postgresql://{f'{parts.username}@' if parts.username else ''}{host}{parts.path}"

    @property
    def artifacts_root(self) -> Path:
        """Folder of checkpoints and reports: beside the SQLite file, else in the working folder."""
        if self.path is not None:
            return self.path.with_name(self.path.name + ".artifacts")
        return Path("paretovit.artifacts").absolute()


def locate(db: str | None) -> Location:
    """What `db`, else PARETOVIT_DB, else ./paretovit.db names. Raises UserError for other databases."""
    text = db or os.environ.get(VARIABLE) or DEFAULT
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _sqlite(text)
    if scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        location = Location(url=f"postgresql+psycopg://{rest}", path=None)
        try:
            location.label  # noqa: B018
        except ValueError as error:
            raise UserError(f"--db {scheme}://...: {error}; give postgresql://USER@HOST/DATABASE") from error
        return location
    if scheme in ("sqlite", "sqlite+pysqlite") and rest.startswith("/") and rest.strip("/"):
        return _sqlite(unquote(rest[1:].partition("?")[0]))
    raise UserError(
        f"--db {scheme}://...: not a database that paretovit reads; give a file, sqlite:///FILE or "
        "postgresql://USER@HOST/DATABASE"
    )


def _sqlite(text: str) -> Location:
    if text.startswith(":memory:"):
        raise UserError(f"--db {text}: a search needs a file, or it would be lost with its process")
    try:
        path = paths.expanded(text).absolute()
    except ValueError as error:
        raise UsageError(f"--db {_brief(text)}: {error}") from None
    return Location(url=f"sqlite:///{quote(str(path), safe='/ ')}", path=path)


def _brief(text: str) -> str:
    return ascii(text) if len(text) <= 60 else f"{text[:40]!a}..."


def refuse_network_disk(path: Path) -> None:
    """Raises UserError when `path` lies on a network file system, where SQLite's WAL corrupts data."""
    kind = file_system(path.resolve(), mounts())
    if kind is not None and kind.lower() in NETWORK_TYPES:
        raise UserError(
            f"{path}: lies on a network file system ({kind}), where SQLite is not safe; "
            "give --db a local path, or a PostgreSQL URL to share it"
        )


def file_system(path: Path, mounted: list[tuple[str, str]]) -> str | None:
    """Type of the file system that holds `path`: the longest mount point above it, the last one mounted."""
    best, kind = -1, None
    for point, type_ in mounted:
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), type_
    return kind


def mounts() -> list[tuple[str, str]]:
    """(mount point, file system type) of everything mounted, in the order of mounting."""
    if sys.platform == "linux":
        lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
        fields = [line.split(" ") for line in lines]
        return [(_unescape(field[1]), field[2]) for field in fields if len(field) > 2]
    import psutil

    return [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
