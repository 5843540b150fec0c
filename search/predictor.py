"""What a network will cost on one device, predicted from its closed form. Pure; never shown in place of a measurement.

A Gaussian process of scikit-learn learns the logarithm of one cost. Its error is known from predictions of what it was
not fitted on (five folds), and an interval is as wide as those errors were: conformal prediction with cross-validated
residuals (Barber et al., "Predictive Inference with the Jackknife+", Annals of Statistics 49, 2021), scaled by what
the process says of its own doubt at a point, and never narrower than the errors themselves.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LEAST = 20
"""Measurements that are needed: with fewer, no interval holds 95%."""
MOST = 200
"""Measurements that are learnt from, the newest: fitting takes time with their third power."""
COVERAGE = 0.95
_FOLDS = 5
_GROWTH = 1.1
_LOGARITHMIC = ("params", "flops", "activations", "tokens", "depth", "width", "head_width")
_SHARES = ("sparse_share", "convolution_share")


@dataclass(frozen=True)
class Prediction:
    """A cost with its 95% interval, in the cost's unit."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Errors:
    """Of predictions of networks that were not learnt from, as shares of the true cost. most: that 95% of them are
    under. count: measurements."""

    median: float
    most: float
    count: int


def features(
    known: Mapping[str, float], image_size: int, family: str, families: Sequence[str]
) -> tuple[float, ...] | None:
    """What is learnt from; None where nothing is known of a network in closed form.

    known: fields of `spaces.costs.Analysis` by name. families: all of the space, among them this one.
    """
    if any(name not in known for name in (*_LOGARITHMIC, *_SHARES)):
        return None
    shape = [math.log1p(known[name]) for name in _LOGARITHMIC]
    shares = [float(known[name]) for name in _SHARES]
    return (*shape, *shares, math.log(image_size), *(float(family == name) for name in families))


def learnt(count: int) -> int:
    """How many of `count` measurements are learnt from: it is learnt anew each time that there are a tenth more, so
    that it depends on their number alone, and not on when somebody asked. 0 where there are too few."""
    step = LEAST
    while count >= (more := math.ceil(step * _GROWTH)):
        step = more
    return step if count >= LEAST else 0


class Predictor:
    """Fitted on at least `LEAST` networks.

    rows: `features`, one a network. costs: positive, in any unit. Of more than `MOST` the last are taken.
    """

    def __init__(self, rows: Sequence[Sequence[float]], costs: Sequence[float]) -> None:
        if len(rows) < LEAST:
            raise ValueError(f"{len(rows)} measurements are too few; {LEAST} are needed")
        table, logs = np.array(rows[-MOST:], float), np.log(np.array(costs[-MOST:], float))
        self._model = _fitted(table, logs)
        predicted, doubts = _predicted_by_others(table, logs)
        residuals = np.abs(predicted - logs)
        shares = np.abs(np.expm1(predicted - logs))
        self._margin, self._scale = _most_of(residuals), _most_of(residuals / doubts)
        self.errors = Errors(float(statistics.median(shares)), _most_of(shares), len(rows[-MOST:]))

    def predict(self, row: Sequence[float]) -> Prediction:
        centre, doubt = (float(found[0]) for found in _predict(self._model, np.array([row], float)))
        margin = max(self._margin, self._scale * doubt)
        return Prediction(*(math.exp(log) for log in (centre, centre - margin, centre + margin)))


def _most_of(values: np.ndarray) -> float:
    """What a new one is under with a probability of 95%, where it is drawn like these: an order statistic."""
    ordered = np.sort(values)
    return float(ordered[min(len(ordered), math.ceil(COVERAGE * (len(ordered) + 1))) - 1])


def _predicted_by_others(table: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each network, what a model fitted on the others of four folds in five says, and how sure it is of it."""
    means, doubts = np.empty_like(logs), np.empty_like(logs)
    for fold in range(_FOLDS):
        left_out = np.arange(len(logs)) % _FOLDS == fold
        model = _fitted(table[~left_out], logs[~left_out])
        means[left_out], doubts[left_out] = _predict(model, table[left_out])
    return means, doubts


def _fitted(table: np.ndarray, logs: np.ndarray) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    curved = ConstantKernel(1.0) * Matern(3.0, nu=2.5)
    kernel = curved + ConstantKernel(1.0) * DotProduct(1.0) + WhiteKernel(0.01)
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True))
    with warnings.catch_warnings():  # of parameters that end at the edge of their range, which does no harm
        warnings.simplefilter("ignore")
        return model.fit(table, logs)


def _predict(model: Any, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the logarithm."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, deviation = model.predict(table, return_std=True)
    return mean, np.maximum(deviation, 1e-6)
