"""How the groups of points look: one colour, one symbol and one word each, in a light and a dark theme.

Colours are chosen so that each has a contrast of at least 3:1 to its background, and no two groups share a symbol:
a reader who sees no colour, or a black-and-white print, still tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """A kind of point. symbol: plotly's name. path: the same glyph in a 16 x 16 SVG. filled: as against an outline."""

    key: str
    label: str
    help: str
    symbol: str
    size: int
    path: str
    filled: bool = False


FRONT, DOMINATED, OUTSIDE, REJECTED = "front", "dominated", "outside", "rejected"
STOPPED, UNFINISHED, FAILED, BASELINE = "stopped", "unfinished", "failed", "baseline"
INCOMPARABLE, BORDERLINE = "incomparable", "borderline"

# In drawing order: what matters most is drawn last, on top.
GROUPS: dict[str, Group] = {
    group.key: group
    for group in (
        Group(
            FAILED,
            "Failed",
            "ended by an error of its own",
            "asterisk-open",
            9,
            "M8 2V14M2.8 5L13.2 11M13.2 5L2.8 11",
        ),
        Group(
            REJECTED,
            "Rejected",
            "measured, breaks a limit, never trained",
            "x-thin-open",
            8,
            "M3 3L13 13M13 3L3 13",
        ),
        Group(
            STOPPED,
            "Stopped",
            "training ended early at a rung",
            "triangle-down-open",
            9,
            "M2.5 4H13.5L8 13.5Z",
        ),
        Group(
            INCOMPARABLE,
            "Incomparable",
            "fully trained, but not measured under the search's conditions",
            "hexagon-open",
            9,
            "M8 2L13.2 5V11L8 14L2.8 11V5Z",
        ),
        Group(
            UNFINISHED, "Unfinished", "not at its last epoch yet", "diamond-open", 10, "M8 2L14 8L8 14L2 8Z"
        ),
        Group(OUTSIDE, "Outside a limit", "fully trained, breaks a limit", "square-open", 9, "M3 3H13V13H3Z"),
        Group(
            BORDERLINE,
            "Borderline",
            "fully trained, its measured interval contains a limit",
            "square-x-open",
            9,
            "M3 3H13V13H3ZM3 3L13 13M13 3L3 13",
        ),
        Group(
            DOMINATED,
            "Dominated",
            "fully trained, another is better in all",
            "circle-open",
            9,
            "M8 3A5 5 0 1 1 7.99 3Z",
        ),
        Group(
            BASELINE,
            "Baseline",
            "a known model, measured and trained the same way",
            "star",
            14,
            "M8 1.2L9.9 6H15L10.9 9.1L12.4 14.2L8 11.2L3.6 14.2L5.1 9.1L1 6H6.1Z",
            filled=True,
        ),
        Group(
            FRONT,
            "Front",
            "fully trained, nothing is better in all",
            "circle",
            11,
            "M8 2.5A5.5 5.5 0 1 1 7.99 2.5Z",
            True,
        ),
    )
}


@dataclass(frozen=True)
class Theme:
    """Colours of a theme. `curves` are told apart by their order as well: symbols and dashes change with it."""

    key: str
    background: str
    ink: str
    muted: str
    grid: str
    limit: str
    groups: dict[str, str]
    curves: tuple[str, ...]


THEMES: dict[str, Theme] = {
    "light": Theme(
        key="light",
        background="#ffffff",
        ink="#1b2430",
        muted="#586374",
        grid="#e4e8ed",
        limit="#b23a12",
        groups={
            FRONT: "#0a5fb4",
            DOMINATED: "#66758a",
            OUTSIDE: "#a3480f",
            BORDERLINE: "#80620f",
            REJECTED: "#c2371b",
            STOPPED: "#8250b4",
            UNFINISHED: "#0c8367",
            FAILED: "#3c4450",
            INCOMPARABLE: "#3f6f8f",
            BASELINE: "#a06a00",
        },
        curves=("#0a5fb4", "#c2371b", "#0c8367", "#8250b4", "#b0357f", "#3f6f8f", "#566b1f"),
    ),
    "dark": Theme(
        key="dark",
        background="#14191f",
        ink="#e5e9ee",
        muted="#9da8b5",
        grid="#2a323b",
        limit="#ff9a75",
        groups={
            FRONT: "#5aaeff",
            DOMINATED: "#94a2b3",
            OUTSIDE: "#f0a060",
            BORDERLINE: "#d9c46a",
            REJECTED: "#ff8066",
            STOPPED: "#c39bf0",
            UNFINISHED: "#45cfa8",
            FAILED: "#c4ccd6",
            INCOMPARABLE: "#8cc4d8",
            BASELINE: "#f2c14e",
        },
        curves=("#5aaeff", "#ff8066", "#45cfa8", "#c39bf0", "#f58cc4", "#8cc4d8", "#b5cc6a"),
    ),
}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
DASHES = ("solid", "dash", "dot", "dashdot")
CURVE_SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "hexagon",
    "pentagon",
    "cross",
)


def axis(theme: Theme, title: str) -> dict[str, object]:
    """The look of an axis in every figure."""
    return {
        "title": {"text": title, "font": {"size": 14}, "standoff": 12},
        "gridcolor": theme.grid,
        "linecolor": theme.muted,
        "tickcolor": theme.muted,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "automargin": True,
        "tickfont": {"size": 13, "color": theme.muted},
    }


def layout(theme: Theme) -> dict[str, object]:
    """The look of every figure: fonts, background, hover box."""
    return {
        "paper_bgcolor": theme.background,
        "plot_bgcolor": theme.background,
        "font": {"family": FONT, "size": 14, "color": theme.ink},
        "hoverlabel": {
            "bgcolor": theme.background,
            "bordercolor": theme.muted,
            "font": {"family": FONT, "size": 13, "color": theme.ink},
            "align": "left",
        },
        "hovermode": "closest",
        "dragmode": "zoom",
    }
