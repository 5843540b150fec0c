"""README.md of an exported model: what it is, its figures and how each was taken, how to use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboards.words import architecture, interval, number, printable
from search import gate
from search.front import Standing
from search.objectives import quantity as quantity_of
from workers.counting import counted

if TYPE_CHECKING:
    from search.export import Wanted
    from workers.bundle.export import Contents

MAX_CLASSES = 20
_STANDINGS = {
    Standing.FRONT: "No other candidate of the search is at least as good in every objective and better in one.",
    Standing.DOMINATED: "Another candidate of the search is at least as good in every objective and better in one.",
    Standing.INCOMPARABLE: "It was not measured under the conditions of the search.",
    Standing.BASELINE: "A baseline: a known network, measured and trained as the candidates were.",
}
_CODE = """```python
from modeling import class_names, load, preprocess

network = load()
scores = network(preprocess("image.png"))  # or a Pillow image, or uint8 pixels
print(class_names()[scores.argmax()])
```"""
_VALIDATED = (
    "Accuracy is on **validation** images, which the search chose by: expect a little less on others. It is no test "
    "score. Brackets hold 95% intervals."
)


def text(wanted: Wanted, contents: Contents) -> str:
    """Markdown. What users and models have named stands in it as text, whatever it holds: each name is a code span, and
    no line is broken inside one, where it could begin a heading or a list."""
    sections = [
        f"# {_title(wanted)}",
        _lead(wanted, contents),
        "## Figures",
        _figures(wanted),
        _VALIDATED,
        *_compared(wanted),
        "## Use",
        *_use(contents),
        "## Made from",
        _origin(wanted, contents),
        "## Files",
        _files(contents),
        "`paretovit verify FOLDER` checks every file, and that the model still gives the stored scores.",
    ]
    return "\n\n".join(sections) + "\n"


def _title(wanted: Wanted) -> str:
    row = wanted.point.row
    which = f"baseline {code(str(row.name))}" if row.is_baseline else f"#{row.number}"
    return f"{code(wanted.view.search.name)}, {which}"


def _lead(wanted: Wanted, contents: Contents) -> str:
    settings = contents.preprocessing
    side, names = settings["image_size"], settings["class_names"]
    more = len(names) - MAX_CLASSES
    classes = ", ".join(map(code, names[:MAX_CLASSES])) + (f" and {more} more" if more > 0 else "")
    colour = "grey" if settings["channels"] == 1 else "colour"
    return (
        f"A classifier of {colour} images of {side} x {side} pixels into {len(names)} classes, trained by paretovit: "
        f"{classes}. {_standing(wanted)}"
    )


def _standing(wanted: Wanted) -> str:
    point = wanted.point
    if point.standing == Standing.OUTSIDE:
        broken = gate.rejection(wanted.view.limits, point.values, point.intervals)
        return f"It breaks a limit of the search: {broken}."
    if point.standing == Standing.BORDERLINE:
        doubt = gate.doubt(wanted.view.limits, point.values, point.intervals)
        return f"Whether it keeps a limit of the search is not known: {doubt}."
    return _STANDINGS[point.standing]


def _figures(wanted: Wanted) -> str:
    point = wanted.point
    lines = ["| quantity | value | how it was taken |", "|---|---|---|"]
    for name, value in point.values.items():
        quantity, bounds = quantity_of(name), interval(name, point.intervals.get(name))
        figure = " ".join(
            part for part in (number(name, value), quantity.unit, f"({bounds})" if bounds else "") if part
        )
        how = cell(wanted.view.measured_how.get(name, ""))
        lines.append(f"| {quantity.label}, `{name}` | {figure} | {how} |")
    return "\n".join(lines)


def _compared(wanted: Wanted) -> list[str]:
    """The other finished baselines beside it."""
    names = [quantity.name for quantity in wanted.view.objectives]
    others = [
        point
        for point in wanted.view.baselines
        if point.row.state == "finished"
        and point.row.id != wanted.point.row.id
        and all(name in point.values for name in names)
    ]
    figures = [
        f"{code(str(point.row.name))}: "
        + ", ".join(f"{name} {number(name, point.values[name])}" for name in names)
        for point in others
    ]
    if not figures:
        return []
    return [f"For comparison, measured and trained the same way: {'; '.join(figures)}."]


def _use(contents: Contents) -> list[str]:
    side, channels = contents.preprocessing["image_size"], contents.preprocessing["channels"]
    lines = ["With torch and timm, in this folder:", _CODE, "or `python modeling.py image.png`."]
    if contents.onnx:
        lines.append(
            f"`model.onnx` takes `images`, float32 [n, {channels}, {side}, {side}] as `preprocess` makes them, and "
            "gives `scores`, float32 [n, classes], for any n."
        )
    return lines


def _origin(wanted: Wanted, contents: Contents) -> str:
    row, source = wanted.point.row, wanted.request.source
    spec, missing = row.spec, contents.sample.missing
    seed = wanted.view.search.config["training"]["seed"]
    items = [
        f"architecture: {code(architecture(row.family, row.point, spec.model))}",
        f"network: {code(spec.model)}, with the arguments in spec.json",
        f"training: {counted(row.epoch, 'epoch')}, seed {seed}, from {_began(spec.weights, contents)}",
        *([] if wanted.began.teacher is None else [f"learnt from the teacher {cell(wanted.began.teacher)}"]),
        f"images: source {code(source.settings.source)}, digest `{source.digest}`",
        f"sample: {contents.sample.words}" + (f", because {code(missing)}" if missing is not None else ""),
    ]
    return "\n".join(f"- {item}" for item in items)


def _began(named: str | None, contents: Contents) -> str:
    """named: weights that the architecture names, of which a checkpoint may tell nothing."""
    found = contents.weights or ({"name": named} if named is not None else None)
    if found is None:
        return "fresh weights"
    known = [code(str(found["data"]))] if "data" in found else []
    known += [f"{found['image_size']} px"] if "image_size" in found else []
    parts = (
        f"parts of the pretrained weights, {found['share']:.0%} of its parameters,"
        if "share" in found
        else ""
    )
    on = f" (pretrained on {', '.join(known)})" if known else ""
    return f"{parts or 'the pretrained weights'} {code(found['name'])}{on}; their source states their licence and data"


def _files(contents: Contents) -> str:
    described = {
        "model.safetensors": "the weights that were validated (averaged ones where the recipe averages)",
        "spec.json": "the architecture: a timm model, its arguments and image size",
        "preprocessing.json": "size, channels, mean and standard deviation of the bytes, class names",
        "modeling.py": "builds the network, loads the weights, prepares images; needs torch and timm alone",
        **({"model.onnx": "the same network for ONNX runtimes"} if contents.onnx else {}),
        "sample.safetensors": f"{contents.sample.words}, and the scores of eager torch in fp32 for them",
        "manifest.json": "the SHA-256 of every file, and the figures above",
    }
    rows = [f"| `{name}` | {words} |" for name, words in described.items()]
    return "\n".join(["| file | what it holds |", "|---|---|", *rows])


def code(words: str, limit: int = 200) -> str:
    """Any text as a code span, in which Markdown and HTML mean nothing."""
    shown = printable(words).replace("`", "'").strip() or "?"
    return f"`{shown if len(shown) <= limit else shown[: limit - 3] + '...'}`"


def cell(words: str) -> str:
    """A sentence, which may hold names, inside a table."""
    escaped = printable(words).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{c}" if c in "\\`*_[]|" else c for c in escaped)
