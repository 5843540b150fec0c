"""Quantities that name a runtime: `latency_ms@onnxruntime`, `peak_memory_mb@openvino:int8`. Pure.

Without a name a quantity is that of `cost.runtime`. A runtime without a precision has that of `cost.precision`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from search.config_errors import nearest
from workers.settings import PRECISIONS, RUNTIMES, Precision, Runtime

QUANTITIES = ("latency_ms", "latency_ms_p95", "throughput", "peak_memory_mb", "model_mb")
"""Those that can name one."""


@dataclass(frozen=True)
class NamedRuntime:
    """suffix: as names of quantities end that mean it, `@onnxruntime:int8`. Two suffixes may mean the same."""

    suffix: str
    runtime: Runtime
    precision: Precision

    @property
    def key(self) -> tuple[Runtime, Precision]:
        return self.runtime, self.precision


def named(names: Iterable[str], precision: Precision) -> tuple[NamedRuntime, ...]:
    """The runtimes that these quantities name, each suffix once, in order. precision: of what names none."""
    found: dict[str, NamedRuntime] = {}
    for name in names:
        if suffix := suffix_of(name):
            runtime, own = parse(suffix[1:])
            found[suffix] = NamedRuntime(suffix, runtime, own or precision)
    return tuple(found.values())


def of_config(config: Mapping[str, Any]) -> tuple[NamedRuntime, ...]:
    """Those that objectives and constraints of a stored config name."""
    return named(asked(config), precision_of(config))


def precision_of(config: Mapping[str, Any]) -> Precision:
    """Of `cost.precision` of a stored config, `auto` resolved as `CostSettings.used_precision` is."""
    precision = config["cost"]["precision"]
    return "fp32" if precision == "auto" else precision


def asked(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The quantities that objectives and constraints of a stored config name, each once."""
    return tuple(dict.fromkeys([*config["objectives"], *config["constraints"]]))


def base_of(name: str) -> str:
    """`latency_ms` of `latency_ms@onnxruntime`."""
    return name.partition("@")[0]


def suffix_of(name: str) -> str:
    """`@onnxruntime` of `latency_ms@onnxruntime`; empty where none is named."""
    return "".join(name.partition("@")[1:])


def parse(place: str) -> tuple[Runtime, Precision | None]:
    """`onnxruntime` or `onnxruntime:int8`. Raises ValueError naming what there is."""
    runtime, colon, precision = place.partition(":")
    if runtime not in RUNTIMES:
        raise ValueError(f"unknown runtime {runtime[:60]!r}; {nearest(runtime, RUNTIMES)}")
    if colon and precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision[:60]!r}; {nearest(precision, PRECISIONS)}")
    return cast(Runtime, runtime), cast(Precision, precision) if colon else None


def words(place: str) -> str:
    """`onnxruntime int8`, as people read it."""
    runtime, precision = parse(place)
    return f"{RUNTIMES[runtime]} {precision}" if precision else RUNTIMES[runtime]
