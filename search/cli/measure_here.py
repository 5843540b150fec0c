"""`paretovit measure`: what timm models, and networks of a search, cost on this device, in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from search.errors import UsageError, UserError

if TYPE_CHECKING:
    import numpy as np

    from search.store.read.rows import MeasurementView
    from spaces.spec import ArchSpec
    from workers.device import Device
    from workers.job import Measurement
    from workers.settings import CostSettings


@dataclass(frozen=True)
class Network:
    """To be measured. kept: figures of it in a database, the newest first."""

    name: str
    spec: ArchSpec
    kept: tuple[MeasurementView, ...] = field(default=(), repr=False)


def measure_timm(
    names: Sequence[str], shape: tuple[int, int, int], costs: Sequence[CostSettings], *, as_json: bool
) -> None:
    """Timm models for images of `shape` (side, channels, classes), fed with noise; nothing is stored of them."""
    _load_plugins()
    _measure([Network(name, _spec(name, shape)) for name in dict.fromkeys(names)], costs, None, as_json)


def measure_search(
    name: str,
    which: Sequence[str],
    settings: Mapping[str, Any],
    batches: Sequence[int] | None,
    db: str | None,
    *,
    again: bool,
    as_json: bool,
) -> None:
    """Candidates and baselines of a search, or its front and baselines, fed with its images and under its conditions
    but for `settings` of the cost and `batches`. again: figures of the database are not taken for them."""
    from search import elsewhere
    from search.cli.reading import reading
    from search.store.read import candidates, results
    from search.store.read.searches import search_by_name

    with reading(db) as reader:
        search = search_by_name(reader, name)
        networks = []
        for entry in elsewhere.entries(reader, search, which):
            assert entry.candidate is not None
            row = candidates.candidate(reader, search.id, entry.candidate)
            kept = () if again else tuple(results.measurements(reader, row.id))
            networks.append(Network(entry.name, entry.spec, kept))
    asked = {**search.config["cost"], **settings}
    costs = [cost_of(asked | {"batch_size": size}) for size in batches or [asked["batch_size"]]]
    _load_plugins()
    _measure(networks, costs, elsewhere.images(search), as_json)


def cost_of(settings: Mapping[str, Any]) -> CostSettings:
    """Raises UsageError for what is not offered, or not here, naming what is."""
    from workers.runtimes import offered
    from workers.settings import PRECISIONS, RUNTIMES, CostSettings

    for name, known in (
        ("runtime", RUNTIMES),
        ("precision", ("auto", *PRECISIONS)),
        ("cache", ("hot", "cold")),
    ):
        given = settings.get(name)
        if given is not None and given not in known:
            raise UsageError(f"measure: --{name}: {str(given)[:60]!r} is none of {', '.join(known)}")
    try:
        cost = CostSettings(**{"energy_seconds": 0, **settings})
    except ValueError as error:
        raise UsageError(f"measure: {error}") from None
    from workers.device import too_many_threads

    if problem := too_many_threads(cost.threads):
        raise UsageError(f"measure: --threads: {problem}")
    kind = "cuda" if device_of(cost).is_cuda else "cpu"
    why_not = offered.refusal(cost.runtime, cost.used_precision, kind)
    why_not = why_not or offered.missing(cost.runtime, cost.used_precision, kind)
    if why_not is not None:
        raise UsageError(f"measure: --runtime: {why_not}")
    return cost


def device_of(cost: CostSettings) -> Device:
    """Raises UsageError naming the devices that are here."""
    from workers import device as devices
    from workers.errors import DeviceError

    try:
        return devices.resolve(cost.device, cost.threads)
    except DeviceError as error:
        raise UsageError(f"measure: {error}") from None


def _load_plugins() -> None:
    from workers.errors import MachineError
    from workers.plugins import load_plugins

    try:
        load_plugins()
    except MachineError as error:
        raise UsageError(f"measure: {error}") from None


def _spec(name: str, shape: tuple[int, int, int]) -> ArchSpec:
    from workers.measure.named import spec_of

    try:
        return spec_of(name, *shape)
    except (ValueError, TypeError, AssertionError, RuntimeError) as error:
        raise UsageError(f"measure: {error}") from None


def _measure(
    networks: Sequence[Network],
    costs: Sequence[CostSettings],
    images: np.ndarray | None,
    as_json: bool,
) -> None:
    """Prints results in the order of networks and costs, then raises UserError naming what failed, and why."""
    from workers.perform import attempt

    results: list[dict[str, Any]] = []
    failures: list[str] = []
    for network in networks:
        for cost in costs:
            failure = attempt(
                lambda network=network, cost=cost: results.append(_result(network, cost, images))
            )
            if failure is not None:
                failures.append(f"{network.name}, batch {cost.batch_size}: {failure.reason}")
    _print(device_of(costs[0]), results, as_json)
    if failures:
        raise UserError("\n".join(f"measure: {failure}" for failure in failures))


def _result(network: Network, cost: CostSettings, images: np.ndarray | None) -> dict[str, Any]:
    """Of the database where it has a clean figure under these conditions, else measured now."""
    import time
    from contextlib import nullcontext

    from spaces import models
    from workers.measure.protocol import measure
    from workers.memory_limit import limited

    params = models.count(network.spec)
    device = device_of(cost)
    kept = next((one for one in network.kept if _is_under(one, cost, device)), None)
    if kept is not None:
        age = max(0.0, time.time() - kept.time)
        return _shown(network.name, params, kept.figures, round(age))
    with nullcontext() if device.is_cuda else limited():
        found = measure(network.spec, cost, images)
    return _shown(network.name, params, _figures(found), None)


def _is_under(kept: MeasurementView, cost: CostSettings, device: Device) -> bool:
    from workers.measure import PROTOCOL

    its = (kept.device_id, kept.threads, kept.runtime, kept.precision, kept.batch_size, kept.protocol)
    ours = (device.id, cost.threads, cost.runtime, cost.used_precision, cost.batch_size, PROTOCOL)
    return its == ours and kept.figures.get("cache", "hot") == cost.cache and not kept.figures["flags"]


def _figures(found: Measurement) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(replace(found, samples=""))


def _shown(name: str, params: int, found: Mapping[str, Any], age_seconds: int | None) -> dict[str, Any]:
    return {
        "model": name,
        "batch_size": found["batch_size"],
        "runtime": found["runtime"],
        "precision": found["precision"],
        "cache": found.get("cache", "hot"),
        "latency_ms": {
            "median": found["latency_ms"],
            "interval": [found["latency_ms_low"], found["latency_ms_high"]],
            "p95": found["latency_ms_p95"],
            "p99": found["latency_ms_p99"],
            "n": found["num_samples"],
            "relative_error": found["latency_relative_error"],
            "spread": found["latency_ms_spread"],
            "stopped_by": found["stopped_by"],
        },
        "throughput": found["throughput"],
        "throughput_batch_size": found["throughput_batch_size"],
        "peak_memory_mb": found["peak_memory_mb"],
        "model_mb": found["model_mb"],
        "params": params,
        "build_seconds": found["build_seconds"],
        "first_call_ms": found["first_call_ms"],
        "flags": list(found["flags"]),
        "age_seconds": age_seconds,
    }


def _print(device: Device, results: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    import json

    from workers.measure import PROTOCOL
    from workers.settings import RUNTIMES

    if as_json:
        here = {"id": device.id, "name": device.name, "threads": device.threads}
        print(json.dumps({"device": here, "protocol": PROTOCOL, "results": results}, indent=2))
        return
    if not results:
        return
    first = results[0]
    threads = f"{device.threads} {'thread' if device.threads == 1 else 'threads'}"
    how = f"{RUNTIMES[first['runtime']]}, {first['precision']}, {first['cache']} cache"
    print(f"{device.name} ({device.torch}, {threads}); {how}; protocol {PROTOCOL}")
    width = max(len("model"), *(len(result["model"]) for result in results))
    print(
        f"{'model':<{width}} {'batch':>5} {'latency ms':>10} {'95% interval':>19} {'p95':>8} {'n':>5} "
        f"{'images/s':>9} {'at':>5} {'peak MB':>8} {'weights MB':>10}"
    )
    for result in results:
        print(_row(result, width))


def _row(result: Mapping[str, Any], width: int) -> str:
    from dashboards.words import duration, printable
    from workers.counting import interval

    latency = result["latency_ms"]
    low, high = latency["interval"]
    remarks = [*result["flags"]]
    if result["age_seconds"] is not None:
        remarks.append(f"measured {duration(result['age_seconds'])} ago")
    return (
        f"{printable(result['model']):<{width}} {result['batch_size']:>5} {latency['median']:>10.4g} "
        f"{interval(low, high):>19} {latency['p95']:>8.4g} {latency['n']:>5} "
        f"{result['throughput']:>9.4g} {result['throughput_batch_size']:>5} {result['peak_memory_mb']:>8.4g} "
        f"{result['model_mb']:>10.4g}{''.join(f'  {remark}' for remark in remarks)}"
    )
