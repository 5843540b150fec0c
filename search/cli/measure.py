"""`paretovit measure`: what timm models cost on this device, by the protocol of a search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from search.cli.options import Database, Json
from search.errors import UsageError


def measure(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TIMM_NAME",
            help="Further timm models; without --timm a search, then candidates of it.",
            show_default=False,
        ),
    ] = None,
    timm: Annotated[
        list[str] | None, typer.Option("--timm", metavar="TIMM_NAME", help="A timm model.")
    ] = None,
    image_size: Annotated[
        int, typer.Option("--image-size", min=4, max=4096, help="Side of the images, px.")
    ] = 224,
    batch: Annotated[
        list[int] | None, typer.Option("--batch", help="Images a call; repeat for several.  [1]")
    ] = None,
    channels: Annotated[int, typer.Option("--channels", min=1, help="Channels of the images.")] = 3,
    classes: Annotated[int, typer.Option("--classes", min=1, help="Classes.")] = 1000,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")] = "auto",
    threads: Annotated[int, typer.Option("--threads", help="CPU threads that the model may use.")] = 1,
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime", help="torch, torch-compile, cuda-graph, onnxruntime, openvino or tensorrt."
        ),
    ] = "torch",
    precision: Annotated[
        str, typer.Option("--precision", help="auto (fp32), fp32, bf16, fp16 or int8.")
    ] = "auto",
    cache: Annotated[str, typer.Option("--cache", help="hot, or cold: emptied before each call.")] = "hot",
    again: Annotated[
        bool, typer.Option("--again", help="Measure though a figure is stored; timm models always are.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="DIR", help="Write a folder that measures on another machine."),
    ] = None,
    brought: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Read in what such a folder has measured."),
    ] = None,
    json: Json = False,
    db: Database = None,
) -> None:
    """Measure latency, throughput and memory of timm models or of a search's, with the device to themselves."""
    from search.cli import measure_elsewhere

    given = _given(context)
    if bundle is not None and brought is not None:
        raise UsageError("measure: --bundle and --import: give one of them")
    if brought is not None:
        _refuse(given - {"brought", "json", "db"}, "--import")
        measure_elsewhere.bring_back(brought, db, json)
        return
    if bundle is not None:
        _refuse(given - {"bundle", "names", "timm", "db", "batch", "threads", *_OF_TIMM}, "--bundle")
        _refuse(set() if timm else given & _OF_TIMM, "--bundle of a search")
        shape = measure_elsewhere.Shape(image_size, channels, classes)
        asked = threads if "threads" in given else None
        measure_elsewhere.bundle(bundle, names or [], timm or [], shape, batch, asked, db)
        return
    from search.cli import measure_here

    asked = {"device": device, "threads": threads, "runtime": runtime, "precision": precision, "cache": cache}
    if timm:
        shape = (image_size, channels, classes)
        costs = [measure_here.cost_of(asked | {"batch_size": size}) for size in batch or [1]]
        measure_here.measure_timm([*timm, *(names or [])], shape, costs, as_json=json)
        return
    if not names:
        raise UsageError(
            "measure: name timm models, --timm vit_tiny_patch16_224, or a search and candidates of it"
        )
    _refuse(given & _OF_TIMM, "a search")
    name, *which = names
    settings = {key: value for key, value in asked.items() if key in given}
    measure_here.measure_search(name, which, settings, batch, db, again=again, as_json=json)


_OF_TIMM = {"image_size", "channels", "classes"}


def _given(context: typer.Context) -> set[str]:
    """Parameters that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _refuse(names: Collection[str], what: str) -> None:
    if names:
        raise UsageError(
            f"measure: {what} has no use for --{sorted(names)[0].replace('_', '-')}; leave it out"
        )
