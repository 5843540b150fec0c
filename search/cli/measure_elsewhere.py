"""`paretovit measure --bundle` and `--import`: measuring on a machine that has onnxruntime alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from search.errors import UsageError, UserError

if TYPE_CHECKING:
    import numpy as np

    from workers.elsewhere.carrying import Entry
    from workers.elsewhere.results import Found, Results


@dataclass(frozen=True)
class Shape:
    """Of the images of timm models that are named."""

    image_size: int
    channels: int
    classes: int


def bundle(
    target: Path,
    names: Sequence[str],
    timm: Sequence[str],
    shape: Shape,
    batches: Sequence[int] | None,
    threads: int | None,
    db: str | None,
) -> None:
    """Writes a folder. names: a search, then candidates of it. batches, threads: None for those of the search, or 1."""
    from workers.bundle.folder import check
    from workers.elsewhere import carrying
    from workers.errors import ExportError
    from workers.runtimes import onnx_runtime

    if not names and not timm:
        raise UsageError("measure: --bundle: name a search, or timm models by --timm")
    try:
        onnx_runtime.check_installed()
        check(target)
    except ExportError as error:
        raise UsageError(f"measure: --bundle: {error}") from None
    chosen, images, settings = _of_search(names, db) if names else ([], None, {})
    chosen += _of_timm(timm, shape)
    cost = _cost(threads or settings.get("threads", 1), settings)
    try:
        content = carrying.write(
            target, chosen, cost, batches or [settings.get("batch_size", 1)], images, typer.echo
        )
    except (ExportError, ValueError) as error:
        raise UserError(f"measure: --bundle: {error}") from error
    size = sum(file["bytes"] for file in content["files"]) / 1e6
    what = "images of the search" if images is not None else "noise for images"
    typer.echo(f"{target}: {len(chosen)} networks and {what}, {size:.0f} MB")
    typer.echo(
        f"on the other machine: pip install numpy onnxruntime; python {target.name}/measure.py --label NAME"
    )


def bring_back(path: Path, db: str | None, as_json: bool) -> None:
    """Reads results in, and shows them."""
    from search.elsewhere import keep
    from search.store.session import open_store
    from workers.elsewhere import results

    try:
        found = results.read(path)
    except results.ResultsError as error:
        raise UserError(f"measure: --import: {error}") from None
    is_of_search = any(each.search is not None for each in found.found)
    store = open_store(db, create=not is_of_search)
    try:
        kept = keep(store, found, path)
    finally:
        store.close()
    if as_json:
        from search.cli.reading import print_json

        print_json(_object(found, len(kept.new)))
        return
    _print(found, len(kept.new), kept.known)


def _of_search(names: Sequence[str], db: str | None) -> tuple[list[Entry], np.ndarray | None, dict[str, Any]]:
    """Networks, images and settings of the cost."""
    from search import elsewhere
    from search.cli.reading import reading
    from search.store.read.searches import search_by_name

    name, *which = names
    with reading(db) as reader:
        search = search_by_name(reader, name)
        chosen = elsewhere.entries(reader, search, which)
    return chosen, elsewhere.images(search), dict(search.config["cost"])


def _of_timm(names: Sequence[str], shape: Shape) -> list[Entry]:
    from workers.elsewhere.carrying import Entry

    if not names:
        return []
    from workers.errors import MachineError
    from workers.measure.named import spec_of
    from workers.plugins import load_plugins

    try:
        load_plugins()
        found = {name: spec_of(name, shape.image_size, shape.channels, shape.classes) for name in names}
    except (MachineError, ValueError, TypeError, AssertionError, RuntimeError) as error:
        raise UsageError(f"measure: {error}") from None
    return [Entry(name, spec) for name, spec in found.items()]


def _cost(threads: int, settings: dict[str, Any]) -> Any:
    from workers.settings import CostSettings

    kept = {name: settings[name] for name in ("max_seconds", "relative_error") if name in settings}
    try:
        return CostSettings(device="cpu", threads=threads, **kept)
    except ValueError as error:
        raise UsageError(f"measure: {error}") from None


def _object(results: Results, new: int) -> dict[str, Any]:
    from workers.elsewhere import PROTOCOL

    return {
        "device": dict(results.device),
        "protocol": PROTOCOL,
        "stored": new,
        "results": [_result(found) for found in results.found],
        "failures": list(results.failures),
    }


def _result(found: Found) -> dict[str, Any]:
    measured = found.measurement
    return {
        "model": found.name,
        "search": found.search,
        "candidate": found.candidate,
        "digest": found.spec.digest,
        "batch_size": measured.batch_size,
        "runtime": measured.runtime,
        "precision": measured.precision,
        "latency_ms": {
            "median": measured.latency_ms,
            "interval": [measured.latency_ms_low, measured.latency_ms_high],
            "p95": measured.latency_ms_p95,
            "p99": measured.latency_ms_p99,
            "n": measured.num_samples,
            "relative_error": measured.latency_relative_error,
        },
        "throughput": measured.throughput,
        "throughput_batch_size": measured.throughput_batch_size,
        "peak_memory_mb": measured.peak_memory_mb,
        "model_mb": measured.model_mb,
        "flags": list(measured.flags),
    }


def _print(results: Results, new: int, known: int) -> None:
    from dashboards.words import printable
    from search import hints
    from workers.counting import interval

    device = results.device
    threads = f"{device['threads']} {'thread' if device['threads'] == 1 else 'threads'}"
    print(printable(f"{device['label']}: {device['name']} ({threads}), {device['id']}; onnxruntime, fp32"))
    width = max((len(found.name) for found in results.found), default=5)
    print(
        f"{'model':<{width}} {'batch':>5} {'latency ms':>10} {'95% interval':>19} {'p95':>8} {'peak MB':>8}"
    )
    for found in results.found:
        measured = found.measurement
        bounds = interval(measured.latency_ms_low, measured.latency_ms_high)
        flags = "".join(f"  {flag}" for flag in measured.flags)
        print(
            printable(
                f"{found.name:<{width}} {measured.batch_size:>5} {measured.latency_ms:>10.4g} {bounds:>19} "
                f"{measured.latency_ms_p95:>8.4g} {measured.peak_memory_mb:>8.4g}{flags}"
            )
        )
    for failure in results.failures:
        print(printable(f"failed there: {failure}"))
    print(f"stored {new}" + (f"; {known} were there already" if known else ""))
    for search in dict.fromkeys(found.search for found in results.found if found.search is not None):
        print(printable(f"front there: {hints.command('front', search, '--device', str(device['label']))}"))
