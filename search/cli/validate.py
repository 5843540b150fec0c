"""`paretovit validate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import Set
from workers.counting import counted

if TYPE_CHECKING:
    from search.validate import Checked, DryBuild

_DRY_BUILDS = 20


def validate(
    path: Annotated[Path, typer.Argument(metavar="SEARCH.YAML", help="The config to check.")],
    overrides: Set = None,
) -> None:
    """Check a config, its images and its device, and build candidates without training them."""
    from search import config
    from search.validate import check_new, dry_build

    checked = check_new(config.load(path, overrides or ()), time.time())
    built = dry_build(checked.plan, _DRY_BUILDS)
    print("\n".join(_report(checked, built)))


def _most(candidates: int | str) -> str:
    if isinstance(candidates, int):
        return f"up to {counted(candidates, 'candidate')}"
    return "as many candidates as there is time for"


def _report(checked: Checked, built: DryBuild) -> list[str]:
    from search import execution_checks, recipes

    plan, data = checked.plan, checked.plan.data
    counts = ", ".join(f"{count:,} {split}" for split, count in data.num_images.items())
    shape = f"{data.image_size} px, {counted(data.channels, 'channel')}"
    params = f"{min(built.params):,} to {max(built.params):,}"
    limit = plan.config.search.max_candidates
    bounds = ", ".join(f"{name} {bound}" for name, bound in plan.config.constraints.items()) or "none"
    lines = [
        f"search       {plan.config.name}",
        f"images       {counts}; {shape}, {len(data.class_names)} classes",
        f"space        {', '.join(plan.space.families)}; {plan.space.size():,} architectures",
        f"objectives   {', '.join(objective.name for objective in plan.objectives)}; constraints: {bounds}",
        f"baselines    {checked.baselines}",
        *([f"teacher      {plan.teacher.name}, {plan.teacher.made}"] if plan.teacher else []),
        f"training     {_most(limit)}, {_stages(plan.rungs)}",
        f"recipe       {recipes.line(plan)}",
        f"execution    {execution_checks.line(plan)}",
        f"dry build    {len(built.specs)} different candidates, {params} parameters",
    ]
    if checked.batch is not None:
        lines.append(
            f"one batch    {counted(checked.batch.num_images, 'image')} decoded in {checked.batch.seconds:.2f} s"
        )
    if checked.deadline is not None:
        ends = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(checked.deadline))
        lines.append(f"deadline     {ends}")
    lines += [f"note         {text}" for text in checked.seen.notes]
    lines += [f"warning      {text}" for text in checked.seen.warnings]
    if checked.advice:
        lines.append(f"warning      {checked.advice}")
    return [*lines, "ok"]


def _stages(rungs: tuple[int, ...]) -> str:
    """rungs: epochs after which the weaker ones are dropped, the last of them those of a whole training."""
    if len(rungs) == 1:
        return f"each trained for {counted(rungs[0], 'epoch')}, without rungs"
    return f"rungs of {', '.join(str(rung) for rung in rungs)} epochs"
