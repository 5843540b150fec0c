"""Tells a web address that a search has ended."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_SECONDS = 10.0


def check(url: str) -> None:
    """Raises ValueError for what is no address to post to."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url[:80]!r} is no address; give one that begins with https:// or http://")


def post(url: str, found: Mapping[str, Any]) -> str | None:
    """Posts JSON; returns why it did not arrive, or None."""
    body = json.dumps(found, allow_nan=False).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return None
    except (urllib.error.URLError, OSError, ValueError) as error:
        return f"{urlsplit(url).hostname}: {error}"
