"""Writes to requests: anyone may append one, the driver settles it."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from search.store.models import Request


def add(session: Session, search_id: int, kind: str, payload: dict[str, Any]) -> None:
    session.add(Request(search_id=search_id, kind=kind, payload=payload, created=time.time()))


def open_ones(session: Session, search_id: int) -> list[Request]:
    """Those that nobody has settled, oldest first."""
    return list(
        session.scalars(
            select(Request).where(Request.search_id == search_id, Request.done.is_(None)).order_by(Request.id)
        )
    )


def newest(session: Session, search_id: int, kind: str) -> Request | None:
    """The last of its kind, settled or not."""
    query = select(Request).where(Request.search_id == search_id, Request.kind == kind)
    return session.scalars(query.order_by(Request.id.desc()).limit(1)).one_or_none()


def settle(session: Session, search_id: int) -> None:
    """Marks all open ones done."""
    session.execute(
        update(Request).where(Request.search_id == search_id, Request.done.is_(None)).values(done=time.time())
    )
