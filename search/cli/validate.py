"""`paretovit init` and `paretovit validate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import Set
from search.errors import UsageError

if TYPE_CHECKING:
    from search.validate import Checked, DryBuild

_DRY_BUILDS = 20


def init(
    source: Annotated[
        Literal["digits", "idx", "folder"] | None,
        typer.Option("--source", help="Kind of images; guessed from --path where not given, else digits."),
    ] = None,
    path: Annotated[Path | None, typer.Option("--path", help="Folder of the images.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the search.")] = None,
    to: Annotated[Path, typer.Option("--to", help="File to write.")] = Path("search.yaml"),
) -> None:
    """Write a commented search.yaml that fits your images."""
    from search import config, config_yaml
    from search.starter import default_name, guess_source, starter
    from search.validate import look_at

    if to.exists() or to.is_symlink():
        raise UsageError(f"--to {to}: is there already, and is not overwritten; name another file with --to")
    if not to.absolute().parent.is_dir():
        raise UsageError(f"--to {to}: {to.parent} is no folder; make it, or choose another")
    kind = source or (guess_source(path) if path else "digits")
    name = name or default_name(kind, path)
    given = {"name": name, "data": {"source": kind} | ({"path": str(path)} if path else {})}
    data = look_at(config.from_dict(given, name="init"))
    text = starter(name, kind, _in_file(path, to), data)
    config.check_document(config_yaml.parse(text, str(to)), to.absolute().parent)
    with to.open("x", encoding="utf-8") as file:
        file.write(text)
    print(f"wrote {to}; look at it, then: paretovit validate {to} && paretovit run {to}")


def validate(
    path: Annotated[Path, typer.Argument(metavar="SEARCH.YAML", help="The config to check.")],
    overrides: Set = None,
) -> None:
    """Check a config, its images and its device, and build candidates without training them."""
    from search import config
    from search.validate import check, dry_build

    checked = check(config.load(path, overrides or ()), time.time())
    built = dry_build(checked.plan, _DRY_BUILDS)
    print("\n".join(_report(checked, built)))


def _report(checked: Checked, built: DryBuild) -> list[str]:
    plan, data = checked.plan, checked.plan.data
    counts = ", ".join(f"{count:,} {split}" for split, count in data.num_images.items())
    shape = f"{data.image_size} px, {data.channels} {'channel' if data.channels == 1 else 'channels'}"
    params = f"{min(built.params):,} to {max(built.params):,}"
    limit = plan.config.search.max_candidates
    bounds = ", ".join(f"{name} {bound}" for name, bound in plan.config.constraints.items()) or "none"
    lines = [
        f"search       {plan.config.name}",
        f"images       {counts}; {shape}, {len(data.class_names)} classes",
        f"space        {', '.join(plan.space.families)}; {plan.space.size():,} architectures",
        f"objectives   {', '.join(objective.name for objective in plan.objectives)}; constraints: {bounds}",
        f"baselines    {', '.join(plan.baselines) or 'none'}",
        f"training     up to {limit} candidates, rungs of {_listed(plan.rungs)} epochs",
        f"dry build    {len(built.specs)} candidates, {params} parameters",
    ]
    if checked.deadline is not None:
        ends = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(checked.deadline))
        lines.append(f"deadline     {ends}")
    return [*lines, "ok"]


def _listed(rungs: tuple[int, ...]) -> str:
    return ", ".join(str(rung) for rung in rungs)


def _in_file(path: Path | None, to: Path) -> str | None:
    """The images' folder as the file names it: relative to the file where it lies below it, else absolute."""
    if path is None:
        return None
    folder = path.expanduser().absolute()
    beside = to.absolute().parent
    return f"./{folder.relative_to(beside)}" if folder.is_relative_to(beside) else str(folder)
