"""The moving average of a network's weights, that of timm, without its work a step on the host."""

from __future__ import annotations

from typing import Any

from timm.utils.model_ema import ModelEmaV3
from torch import Tensor, nn


class Average(ModelEmaV3):
    """Looks the tensors up at the first update, and not at each: in a step of a small network that takes longer than to
    average them. The same bits. The tensors of both networks have to stay the same ones, as they do in training."""

    def __init__(self, model: nn.Module, **settings: Any) -> None:
        super().__init__(model, **settings)
        self._averaged: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._copied: list[tuple[Tensor, Tensor]] = []
        self._known_id: int | None = None

    def apply_update_(self, model: nn.Module, decay: float) -> None:
        if self._known_id != id(model):
            self._look_up(model)
        self._foreach_lerp_(*self._averaged, weight=1.0 - decay)
        for own, other in self._copied:
            own.copy_(other)

    def _look_up(self, model: nn.Module) -> None:
        pairs = list(zip(self.module.state_dict().values(), model.state_dict().values(), strict=True))
        floating = [pair for pair in pairs if pair[0].is_floating_point()]
        self._averaged = ([own for own, _ in floating], [other for _, other in floating])
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]
        self._known_id = id(model)
