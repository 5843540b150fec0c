"""`paretovit space`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.options import Json
from search.errors import UsageError
from workers.counting import counted

if TYPE_CHECKING:
    from search.own_family import OwnFamily
    from spaces.space import Space
    from spaces.spec import ArchSpec, Task

NUM_SAMPLES = 3
NUM_DRAWN = 200


def space(
    preset: Annotated[
        str | None,
        typer.Argument(
            help="A preset: tiny, small, base, autoformer-tiny, -small or -base.", show_default=False
        ),
    ] = None,
    named: Annotated[
        str | None,
        typer.Option(
            "--named",
            metavar="TIMM_NAME",
            help="A timm model as a point; also autoformer_tiny, _small, _base.",
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option("--image-size", help="Side of the images, px.  [32 tiny, 64 small, 224 base]"),
    ] = None,
    channels: Annotated[int | None, typer.Option("--channels", help="Channels of the images.  [3]")] = None,
    classes: Annotated[
        int | None, typer.Option("--classes", help="Classes.  [10; 1000 with --named]")
    ] = None,
    families: Annotated[
        str | None, typer.Option("--families", metavar="A,B", help="Only these families.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what a preset searches: dimensions, size, samples and what they cost; or a timm model as a point."""
    from spaces.dims import SpaceError
    from spaces.registry import PRESETS, named_space, published_size
    from spaces.spec import Task
    from workers.errors import MachineError

    if (preset is None) == (named is None):
        raise UsageError(f"space: give one of a preset ({', '.join(PRESETS)}) and --named TIMM_NAME")
    if named is not None and families is not None:
        raise UsageError("space: --families does not go with --named")
    by_name: dict[str, OwnFamily] = {}
    try:
        if named is not None:
            own_size = published_size(named)
        else:
            own_size = PRESETS[preset].example_size if preset in PRESETS else 32
        task = Task(
            image_size=own_size if image_size is None else image_size,
            channels=3 if channels is None else channels,
            num_classes=(1000 if named else 10) if classes is None else classes,
        )
        if named is not None:
            shown = named_space(named, task)
        else:
            shown, by_name = _of_preset(task, preset, None if families is None else families.split(","))
        _print(preset or named or "", shown, by_name, json)
    except (SpaceError, MachineError) as error:
        raise UsageError(f"space: {error}") from error


def _of_preset(
    task: Task, preset: str | None, families: Sequence[str] | None
) -> tuple[Space, dict[str, OwnFamily]]:
    """The space, and the families of the user's own that it has, by name."""
    from search.own_families import find
    from search.own_family import by_own_names
    from spaces.registry import make_space

    own = find([name for name in families or () if ":" in name])
    wanted, by_name = by_own_names(families, own)
    return make_space(task, preset, wanted, own=by_name), by_name


def _print(name: str, shown: Space, own: Mapping[str, OwnFamily], as_json: bool) -> None:
    import json
    import random

    rng = random.Random(0)
    count = min(shown.size(), NUM_DRAWN)
    drawn = [_sample(shown, own, shown.sample(rng)) for _ in range(count)]
    if as_json:
        dimensions = [dimension.to_dict() for dimension in shown.dimensions]
        summary = {
            "name": name,
            "size": shown.size(),
            "dimensions": dimensions,
            "samples": drawn[:NUM_SAMPLES],
        }
        print(json.dumps(summary, indent=2))
        return
    for line in _lines(name, shown, drawn):
        print(line)


def _sample(shown: Space, own: Mapping[str, OwnFamily], point: dict[str, Any]) -> dict[str, Any]:
    """A point with what it costs; without a closed form, its parameters as they are counted, and None for the rest."""
    from spaces.analysis import analyse, knows

    spec = shown.spec(point)
    family = own.get(point["family"])
    known = None if family is None else family.analyse(spec)
    if known is None and (family is None or knows(spec)):
        known = analyse(spec)
    return {
        "spec": spec.to_dict(),
        "params": _count(family, spec) if known is None else known.params,
        "flops": None if known is None else known.flops,
        "tokens": None if known is None else known.tokens,
        "activations": None if known is None else known.activations,
        "point": point,
    }


def _count(family: OwnFamily | None, spec: ArchSpec) -> int:
    from search.own_family import guarded
    from spaces import models

    assert family is not None
    what = f"building {spec.model} with {dict(spec.args)}"
    return guarded(family.reference, what, lambda: models.count(spec))


def _lines(name: str, shown: Space, drawn: list[dict[str, Any]]) -> list[str]:
    task, size = shown.task, shown.size()
    lines = [
        f"{name}: {counted(size, 'network')} for {task.image_size} x {task.image_size} images, "
        f"{counted(task.channels, 'channel')}, {task.num_classes} classes",
        f"legal: {size / shown.raw_size():.0%} of all combinations",
    ]
    for key, label in (("params", "parameters"), ("flops", "FLOPs")):
        values = sorted(sample[key] for sample in drawn if sample[key] is not None)
        of = (
            f"{values[0]:,} to {values[-1]:,}, median {values[len(values) // 2]:,}" if values else "not known"
        )
        lines.append(f"{label}: {of}")
    wide = max(20, *(len(dimension.name) for dimension in shown.dimensions))
    lines += ["", f"{'dimension':<{wide}} {'values':<36} when"]
    for dimension in shown.dimensions:
        own = [condition for condition in dimension.when if condition[0] != "family"]
        when = " and ".join(f"{key} in {', '.join(str(v) for v in allowed)}" for key, allowed in own)
        lines.append(f"{dimension.name:<{wide}} {dimension.domain!s:<36} {when}".rstrip())
    lines += ["", "samples"]
    for sample in drawn[:NUM_SAMPLES]:
        point = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in sample["point"].items())
        lines.append(f"  {point}")
        quantities = {"params": "parameters", "flops": "FLOPs", "tokens": "tokens"}
        known = [f"{sample[key]:,} {label}" for key, label in quantities.items() if sample[key] is not None]
        lines.append(f"    {', '.join(known)}")
    return lines
