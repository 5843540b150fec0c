"""Learning rates of fine-tuning: the classifier learns fastest, and layers the less the further they are below it.

Layer-wise decay is BEiT's (arXiv 2106.08254, appendix), here timm's `param_groups_layer_decay`.
"""

from __future__ import annotations

from typing import Any

from timm.optim import param_groups_layer_decay  # pyright: ignore[reportPrivateImportUsage]
from torch import nn

from workers.knobs import Knobs

SMALLEST_SCALE = 0.02
"""Smallest share that layer_decay leaves: about that of the first layer of a ViT with 12 blocks at 0.75. Networks with
more layers, as timm counts them, would hardly change in the lowest."""


def parameter_groups(network: nn.Module, knobs: Knobs) -> list[dict[str, Any]]:
    """Groups for an optimizer whose rate is the classifier's: `lr_scale` is each group's share of it.

    Layer n below the classifier, as timm counts the layers of such a network, has the share
    backbone_rate * max(layer_decay ** n, SMALLEST_SCALE). Norms, biases and what the network names are spared from
    weight decay. Muon leaves the classifier to AdamW.
    """
    spared: Any = getattr(network, "no_weight_decay", None)
    groups = param_groups_layer_decay(
        network,
        weight_decay=knobs.weight_decay,
        no_weight_decay_list=spared() if spared else (),
        layer_decay=knobs.layer_decay,
        min_scale=SMALLEST_SCALE,
    )
    classifier = classifier_parameters(network)
    divided: list[dict[str, Any]] = []
    for group in groups:
        of_classifier = [parameter for parameter in group["params"] if id(parameter) in classifier]
        others = [parameter for parameter in group["params"] if id(parameter) not in classifier]
        if others:
            divided.append(group | {"params": others, "lr_scale": group["lr_scale"] * knobs.backbone_rate})
        if of_classifier:
            muon = {"use_fallback": True} if knobs.optimizer == "muon" else {}
            divided.append(group | {"params": of_classifier, "lr_scale": 1.0} | muon)
    return divided


def classifier_parameters(network: nn.Module) -> set[int]:
    """Ids of the parameters of a network's classifier, or of both of a distilled one; none where it names none."""
    find: Any = getattr(network, "get_classifier", None)
    found = find() if find else ()
    modules = found if isinstance(found, tuple | list) else (found,)
    return {
        id(parameter)
        for module in modules
        if isinstance(module, nn.Module)
        for parameter in module.parameters()
    }
