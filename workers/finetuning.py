"""Learning rates of fine-tuning: the classifier learns fastest, and layers the less the further they are below it.

Layer-wise decay is BEiT's (arXiv 2106.08254, appendix), here timm's `param_groups_layer_decay`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timm.optim import param_groups_layer_decay  # pyright: ignore[reportPrivateImportUsage]
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

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


def freeze(
    network: nn.Module, optimizer: Optimizer, loaded: Mapping[str, Any] | None, is_frozen: bool
) -> None:
    """Freezes what came whole or sliced from pretrained weights, or lets it learn again.

    loaded: as `pretrained.Loaded` and `inheritance.Inherited` tell it. Frozen parameters get no gradients, and so no
    moments in the optimizer. Batch norms among them keep their statistics.
    """
    told = loaded or {}
    learning = {*told.get("fresh", ()), *told.get("widened", ()), *classifier_names(network)}
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for name, parameter in network.named_parameters():
        if id(parameter) in trained:
            parameter.requires_grad_(not is_frozen or name in learning)
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and network.training and f"{name}.weight" not in learning:
            module.train(not is_frozen)


def classifier_names(network: nn.Module) -> set[str]:
    """Names of the same parameters."""
    classifier = classifier_parameters(network)
    return {name for name, parameter in network.named_parameters() if id(parameter) in classifier}


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
