"""`paretovit measure`: what timm models cost on this device, by the protocol of a search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from search.cli.options import Database, Json
from search.errors import UsageError, UserError

if TYPE_CHECKING:
    from spaces.spec import ArchSpec
    from workers.device import Device
    from workers.job import Measurement
    from workers.settings import CostSettings


def measure(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TIMM_NAME",
            help="Further timm models. With --bundle: a search, then candidates of it.",
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
        str, typer.Option("--runtime", help="torch, eagerly, or onnxruntime on the CPU (extra export).")
    ] = "torch",
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
    """Measure latency, throughput and memory of timm models in fp32, with the device to themselves."""
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
    del again  # nothing is stored of models named here
    wanted = [*(timm or []), *(names or [])]
    if not timm:
        raise UsageError("measure: name at least one timm model: --timm vit_tiny_patch16_224")
    costs = _costs(device, threads, batch or [1], runtime)
    results, failures = _measure_all(wanted, (image_size, channels, classes), costs)
    _print(_resolved(device, threads), results, json)
    if failures:
        raise UserError("\n".join(f"measure: {failure}" for failure in failures))


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


def _costs(device: str, threads: int, batches: list[int], runtime: str) -> list[CostSettings]:
    from workers.settings import RUNTIMES, CostSettings, Runtime

    if runtime not in RUNTIMES:
        raise UsageError(f"measure: --runtime: {runtime[:60]!r} is none of {', '.join(RUNTIMES)}")
    try:
        costs = [
            CostSettings(device=device, threads=threads, batch_size=size, runtime=cast(Runtime, runtime))
            for size in batches
        ]
    except ValueError as error:
        raise UsageError(f"measure: {error}") from None
    if runtime == "onnxruntime":
        _check_onnxruntime(_resolved(device, threads))
    else:
        _resolved(device, threads)
    return costs


def _check_onnxruntime(device: Device) -> None:
    from workers.errors import ExportError
    from workers.runtimes import onnx_runtime

    try:
        onnx_runtime.check_installed()
    except ExportError as error:
        raise UsageError(f"measure: --runtime: {error}") from None
    if device.is_cuda:
        raise UsageError("measure: --runtime: onnxruntime measures on the CPU; give --device cpu")


def _resolved(device: str, threads: int) -> Device:
    from workers import device as devices
    from workers.errors import DeviceError

    try:
        return devices.resolve(device, threads)
    except DeviceError as error:
        raise UsageError(f"measure: {error}") from None


def _measure_all(
    names: list[str], shape: tuple[int, int, int], costs: list[CostSettings]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Results in the order of names and batches; names that failed, each with its reason."""
    from workers.errors import MachineError
    from workers.measure.named import spec_of
    from workers.perform import attempt
    from workers.plugins import load_plugins

    try:
        load_plugins()
    except MachineError as error:
        raise UsageError(f"measure: {error}") from None
    results: list[dict[str, Any]] = []
    failures: list[str] = []
    specs = {}
    for name in dict.fromkeys(names):
        try:
            specs[name] = spec_of(name, *shape)
        except (ValueError, TypeError, AssertionError, RuntimeError) as error:
            raise UsageError(f"measure: {error}") from None
    for name, spec in specs.items():
        for cost in costs:
            failure = attempt(
                lambda spec=spec, cost=cost, name=name: results.append(_measure_one(name, spec, cost))
            )
            if failure is not None:
                failures.append(f"{name}, batch {cost.batch_size}: {failure.reason}")
    return results, failures


def _measure_one(name: str, spec: ArchSpec, cost: CostSettings) -> dict[str, Any]:
    from contextlib import nullcontext

    from spaces import models
    from workers.measure.protocol import measure as measure_spec
    from workers.memory_limit import limited

    is_cuda = _resolved(cost.device, cost.threads).is_cuda
    with nullcontext() if is_cuda else limited():
        return _result(name, models.count(spec), measure_spec(spec, cost))


def _result(name: str, params: int, found: Measurement) -> dict[str, Any]:
    return {
        "model": name,
        "batch_size": found.batch_size,
        "runtime": found.runtime,
        "precision": found.precision,
        "latency_ms": {
            "median": found.latency_ms,
            "interval": [found.latency_ms_low, found.latency_ms_high],
            "p95": found.latency_ms_p95,
            "p99": found.latency_ms_p99,
            "n": found.num_samples,
            "relative_error": found.latency_relative_error,
            "spread": found.latency_ms_spread,
            "stopped_by": found.stopped_by,
        },
        "throughput": found.throughput,
        "throughput_batch_size": found.throughput_batch_size,
        "peak_memory_mb": found.peak_memory_mb,
        "model_mb": found.model_mb,
        "params": params,
        "build_seconds": found.build_seconds,
        "first_call_ms": found.first_call_ms,
        "flags": list(found.flags),
    }


def _print(device: Device, results: list[dict[str, Any]], as_json: bool) -> None:
    import json

    from workers.measure import PROTOCOL
    from workers.settings import RUNTIMES

    if as_json:
        here = {"id": device.id, "name": device.name, "threads": device.threads}
        print(json.dumps({"device": here, "protocol": PROTOCOL, "results": results}, indent=2))
        return
    if not results:
        return
    threads = f"{device.threads} {'thread' if device.threads == 1 else 'threads'}"
    print(
        f"{device.name} ({device.torch}, {threads}); {RUNTIMES[results[0]['runtime']]}, fp32; protocol {PROTOCOL}"
    )
    width = max(len(result["model"]) for result in results)
    print(
        f"{'model':<{width}} {'batch':>5} {'latency ms':>10} {'95% interval':>19} {'p95':>8} {'n':>5} "
        f"{'images/s':>9} {'at':>5} {'peak MB':>8} {'weights MB':>10}"
    )
    for result in results:
        print(_row(result, width))


def _row(result: dict[str, Any], width: int) -> str:
    latency = result["latency_ms"]
    low, high = latency["interval"]
    flags = "".join(f"  {flag}" for flag in result["flags"])
    return (
        f"{result['model']:<{width}} {result['batch_size']:>5} {latency['median']:>10.4g} "
        f"{f'{low:.4g} to {high:.4g}':>19} {latency['p95']:>8.4g} {latency['n']:>5} "
        f"{result['throughput']:>9.4g} {result['throughput_batch_size']:>5} {result['peak_memory_mb']:>8.4g} "
        f"{result['model_mb']:>10.4g}{flags}"
    )
