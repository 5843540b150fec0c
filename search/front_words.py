"""How the values of a front were taken, in one sentence a quantity. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from search.store.read.rows import SearchRow
from workers.counting import counted


def how_measured(
    search: SearchRow,
    figures: Sequence[Mapping[str, Any]],
    further: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    *,
    some_shorter: bool = False,
) -> dict[str, str]:
    """Quantity -> sentence. figures: of the measurements shown, all of the same conditions; empty before any.
    further: the same in another runtime, by how quantities end that name it. some_shorter: whether there are accuracies
    of a training that has not come to its last epoch."""
    sentences = {"accuracy": accuracy_after(search, search.config["training"]["epochs"], some_shorter)}
    if figures:
        sentences |= _cost(figures)
    for suffix, others in (further or {}).items():
        if others:
            sentences |= {f"{name}{suffix}": text for name, text in _cost(others).items()}
    computed = "computed from the architecture, not measured"
    return sentences | {
        "params": f"trainable weights, {computed}",
        "flops": f"2 x multiply-adds of one image, {computed}",
    }


def accuracy_after(search: SearchRow, epochs: int, some_shorter: bool = False) -> str:
    """How the accuracy of a candidate was taken that was trained for so many epochs, or for fewer where that is told
    beside it."""
    num_images = search.data.get("num_images", {}).get("val")
    images = f"{num_images:,} validation images" if num_images is not None else "validation images"
    trained = counted(epochs, "epoch")
    shorter = ", or after fewer where the epochs beside it are fewer" if some_shorter else ""
    seed = search.config["training"]["seed"]
    return (
        f"share of the {images} classified right after {trained} of training (seed {seed}){shorter}, with its 95% "
        "Wilson interval; the search chose by these images, and the test split took no part"
    )


def _cost(figures: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    first = figures[0]
    threads = counted(first["threads"], "thread")
    how = f"{threads}, {first['runtime']} {first['precision']}, protocol {first['protocol']}"
    how += "" if first.get("cache", "hot") == "hot" else ", cold cache"
    place = f"on {first['device_name']}, {how}"
    alone = f"{place}, with no training beside it"
    latency = f"of one synchronised call at batch {first['batch_size']} {alone}; {_calls(figures)}"
    batches = sorted({row["throughput_batch_size"] for row in figures})
    return {
        "latency_ms": f"median {latency}, with the median's 95% interval",
        "latency_ms_p95": f"95th percentile {latency}",
        "throughput": f"images a second at batch {_range(batches)} {alone}",
        "peak_memory_mb": f"device memory, on a CPU resident growth of the process, {place}",
        "model_mb": f"weights in {first['precision']}",
        **_energy(figures, place),
    }


def _energy(figures: Sequence[Mapping[str, Any]], place: str) -> dict[str, str]:
    sources = sorted({row["energy_source"] for row in figures if row.get("energy_mj") is not None})
    return (
        {"energy_mj": f"an image, less idle, counted by {' and by '.join(sources)}, {place}"}
        if sources
        else {}
    )


def _calls(figures: Sequence[Mapping[str, Any]]) -> str:
    flagged = Counter(flag for row in figures for flag in row["flags"])
    flags = "".join(f"; {number} of {len(figures)} {flag}" for flag, number in sorted(flagged.items()))
    return f"{_range([row['num_samples'] for row in figures])} calls a model{flags}"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
