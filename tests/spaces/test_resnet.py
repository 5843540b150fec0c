"""The ResNet for small images."""

from __future__ import annotations

import pytest

from spaces.analysis import analyse
from spaces.resnet import PUBLISHED, resnet
from spaces.spec import ArchSpec, Task


@pytest.mark.parametrize("image_size", [8, 28, 32, 33, 64, 65, 96, 128])
@pytest.mark.parametrize(("width", "blocks"), [(6, 1), (16, 2)])
def test_it_builds_runs_and_costs_what_the_closed_form_says(count_built, image_size, width, blocks):
    spec = resnet(Task(image_size, 3, 10), width, blocks)
    built, known = count_built(spec), analyse(spec)
    assert built.output == (1, 10)
    assert built.finite
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)


def test_tiny_images_are_not_reduced_by_the_stem():
    strides = [resnet(Task(size, 1, 10), 8, 1).args["stem_stride"] for size in (8, 32, 64, 128)]
    assert strides == [1, 1, 2, 4]


@pytest.mark.parametrize("image_size", [32, 65, 96])
@pytest.mark.parametrize("name", PUBLISHED)
def test_timm_s_resnets_cost_what_the_closed_form_says(count_built, name, image_size):
    spec = ArchSpec(name, {"in_chans": 1, "num_classes": 10}, image_size)
    built, known = count_built(spec, device="meta"), analyse(spec)
    assert (built.params, built.flops, built.activations) == (known.params, known.flops, known.activations)
