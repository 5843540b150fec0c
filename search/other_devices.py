"""Devices other than a search's own that its networks were measured on: by id, or by the label that they were given."""

from __future__ import annotations

from collections.abc import Sequence

from search.errors import UserError
from search.store.read.rows import MeasurementView


def of_device(measured: Sequence[MeasurementView], device: str, search: str) -> list[MeasurementView]:
    """The measurements of one device. device: its id, or its label.

    Raises UserError naming the devices there are, where it is none of them or a label of several.
    """
    ids = {m.device_id for m in measured if device in (m.device_id, label_of(m))}
    if len(ids) > 1:
        raise UserError(f"--device: {device!r} is the label of several; give an id: {', '.join(sorted(ids))}")
    if not ids:
        there = dict.fromkeys(_shown(m) for m in measured)
        known = f"there are: {', '.join(there)}" if there else "nothing of it was measured yet"
        raise UserError(f"--device: {search} was not measured on {device[:60]!r}; {known}")
    return [m for m in measured if m.device_id in ids]


def label_of(measured: MeasurementView) -> str | None:
    """How the device was called by who measured there; None for a device of the search's own machines."""
    return (measured.figures.get("conditions") or {}).get("label")


def _shown(measured: MeasurementView) -> str:
    label = label_of(measured)
    return measured.device_id if label is None else f"{label} ({measured.device_id})"
