"""Training that counts every class alike, however many images it has: by what is drawn, or by what an error weighs."""

from __future__ import annotations

import torch
from torch import Tensor


def evenly_drawn(labels: Tensor, generator: torch.Generator) -> Tensor:
    """int64 [n]: as many places in a split as it has images, drawn with replacement, every class that is there as
    likely as any other, and so is every image of a class.

    labels: int64 [n], on the device of the generator.
    """
    draw = {"generator": generator, "device": labels.device}
    by_class = labels.argsort(stable=True)
    counts = torch.bincount(labels)
    starts = counts.cumsum(0) - counts
    present = counts.nonzero()[:, 0]
    classes = present[torch.randint(len(present), (len(labels),), **draw)]
    within = (torch.rand(len(labels), dtype=torch.float64, **draw) * counts[classes]).long()
    return by_class[starts[classes] + within]


def class_weights(labels: Tensor, num_classes: int) -> Tensor:
    """float32 [num_classes]: of an error on an image of each class, inverse to the class's share of the images; 1 where
    classes are even, and 1 on average over the images. 0 for a class without images."""
    counts = torch.bincount(labels, minlength=num_classes)
    num_present = int((counts > 0).sum())
    return torch.where(counts > 0, len(labels) / (num_present * counts.clamp(min=1)), 0).float()
