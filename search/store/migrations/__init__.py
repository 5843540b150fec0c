"""Versions of our tables, oldest first: what opening a database reads. Alembic's scripts are beside it."""

VERSION_TABLE = "paretovit_version"
REVISIONS = ("0001", "0002")
HEAD = REVISIONS[-1]
