"""Points as vectors of one length, whatever their family: what a model of accuracy or cost learns from.

The first numbers say what the network is like, in the units of `spaces.costs.Analysis`, and mean the same in every
family. Then come the family and every dimension that the space searches; families share the columns of dimensions
that have the same name. Distinct points therefore have distinct vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log

from spaces import analysis
from spaces.dims import Dimension, Value
from spaces.space import FAMILY, Space
from spaces.spec import ArchSpec

SHAPE = (
    "log_params",
    "log_flops",
    "log_activations",
    "tokens",
    "depth",
    "width",
    "head_width",
    "sparse_share",
    "convolution_share",
    "image_size",
)
"""Names of the first numbers; logarithms are natural."""


class Encoder:
    """Encodes the points of one space.

    names: what each number is: those of `SHAPE`, then the dimensions without their family's name: `point.family=vit`
    and `point.pooling=average` (1 or 0) for words and switches, `point.depth` for numbers (from 0, the least value in
    the space, to 1, the largest; 0 where the point has no such dimension).
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._numbers: dict[str, tuple[float, float]] = {}
        words: dict[str, None] = {}
        for dimension in space.dimensions:
            name = _own_name(dimension)
            if dimension.domain.ordered:
                values = [float(value) for value in dimension.domain.values]
                low, high = self._numbers.get(name, (values[0], values[0]))
                self._numbers[name] = (min(low, *values), max(high, *values))
            else:
                words |= dict.fromkeys(_word(name, value) for value in dimension.domain.values)
        self._columns = {column: at for at, column in enumerate((*words, *self._numbers))}
        self.names = (*SHAPE, *self._columns)
        self._own_names = {dimension.name: _own_name(dimension) for dimension in space.dimensions}

    def encode(self, point: Mapping[str, Value]) -> tuple[float, ...]:
        """One number for each of `names`. Raises SpaceError when the point is illegal."""
        spec = self._space.spec(point)
        searched = [0.0] * len(self._columns)
        for key, value in point.items():
            name = self._own_names[key]
            if isinstance(value, str | bool):
                column, number = _word(name, value), 1.0
            else:
                low, high = self._numbers[name]
                column, number = name, (value - low) / (high - low) if high > low else 0.0
            searched[self._columns[column]] = number
        return (*_shape(spec), *searched)


def _shape(spec: ArchSpec) -> Iterator[float]:
    """0 for what is not known without building, as of some networks of the zoo."""
    if not analysis.knows(spec):
        yield from (0.0,) * (len(SHAPE) - 1)
    else:
        known = analysis.analyse(spec)
        yield from (log(known.params), log(known.flops), log(known.activations))
        yield from (known.tokens, known.depth, known.width, known.head_width)
        yield from (known.sparse_share, known.convolution_share)
    yield spec.image_size


def _own_name(dimension: Dimension) -> str:
    """`point.depth` for `vit.depth`."""
    return f"point.{dimension.name if dimension.name == FAMILY else dimension.name.partition('.')[2]}"


def _word(name: str, value: Value) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
