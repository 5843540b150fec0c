from __future__ import annotations

from typing import Any

import pytest

from dashboards import search_data, table
from dashboards.search_context import SearchContext, search_context


@pytest.fixture
def context(filled: Any) -> SearchContext:
    with filled.store.read() as reader:
        return search_context(search_data.load(reader, filled.name))


def test_a_row_has_a_cell_under_every_heading(context: SearchContext) -> None:
    headings = [column.label for column in table.columns(context.front)]
    for row in table.rows(context.front):
        assert len(headings) == 5 + len(row.objectives) + len(row.others)
        behind = [context.front.axes[cell.name].label for cell in row.others]
        assert headings[4 + len(row.objectives) : -1] == behind


def test_the_front_stands_first_from_cheap_to_dear_and_every_point_once(context: SearchContext) -> None:
    rows = table.rows(context.front)
    front = [row for row in rows if row.group.key == "front"]
    assert rows[: len(front)] == front
    latencies = [float(row.objectives[1].sort) for row in front]
    assert latencies == sorted(latencies)
    assert len({row.key for row in rows}) == len(rows) == len(context.data.points)


def test_an_accuracy_of_a_shorter_training_says_so(context: SearchContext) -> None:
    for row in table.rows(context.front):
        shorter = row.group.key in ("stopped", "unfinished") and bool(row.objectives[0].sort)
        assert bool(row.objectives[0].remark) == shorter


def test_a_figure_is_sorted_by_its_exact_value(context: SearchContext) -> None:
    values = {point.key: point.values for point in context.data.points}
    for row in table.rows(context.front):
        for cell in (*row.objectives, *row.others):
            assert cell.sort == (repr(values[row.key][cell.name]) if cell.name in values[row.key] else "")


def test_the_legend_counts_every_group(context: SearchContext) -> None:
    counts = {entry.group.key: entry.count for entry in table.legend(context.data.points)}
    assert next(iter(counts)) == "front"
    assert sum(counts.values()) == 23
    assert counts["incomparable"] == 0
    assert counts["rejected"] == 4


def test_rows_lead_to_pages_where_there_are_any(context: SearchContext) -> None:
    assert {row.href for row in table.rows(context.front)} == {""}
    assert {row.href for row in table.rows(context.front, lambda point: f"/{point.key}")} == {
        f"/{point.key}" for point in context.data.points
    }
