"""Specs become networks through timm alone."""

from __future__ import annotations

import random

import pytest
import timm
import torch
from timm.layers import DropPath

from spaces import models
from spaces.analysis import analyse
from spaces.registry import make_space
from spaces.spec import ArchSpec, Task


@pytest.mark.parametrize("family", ["vit", "swin", "hybrid"])
def test_timm_rebuilds_a_candidate_from_its_model_and_arguments(family):
    space = make_space(Task(8, 1, 10), families=[family])
    spec = space.spec(space.sample(random.Random(0)))
    again = timm.create_model(spec.model, **spec.args)
    again.load_state_dict(models.build(spec).state_dict())


@pytest.mark.parametrize("family", ["vit", "swin", "hybrid"])
def test_stochastic_depth_grows_to_its_rate_and_adds_no_parameters(family):
    depths = {"swin": {"depth_1": [2], "depth_2": [2]}}.get(family, {"depth": [3]})
    space = make_space(Task(8, 1, 10), families=[family], overrides={family: depths})
    spec = space.spec(space.sample(random.Random(0)))
    model = models.build(spec, stochastic_depth=0.2)
    rates = [module.drop_prob for module in model.modules() if isinstance(module, DropPath)]
    assert max(rates) == pytest.approx(0.2)
    assert sum(parameter.numel() for parameter in model.parameters()) == analyse(spec).params


def test_without_a_rate_no_block_is_dropped():
    space = make_space(Task(8, 1, 10), families=["swin"])
    model = models.build(space.spec(space.sample(random.Random(0))))
    assert not [module for module in model.modules() if isinstance(module, DropPath) and module.drop_prob]


def test_a_model_without_stochastic_depth_builds_and_refuses_a_rate():
    spec = ArchSpec("vgg11", {"num_classes": 10}, 32)
    with torch.device("meta"):
        assert models.build(spec) is not None
        with pytest.raises(TypeError, match="drop_path_rate"):
            models.build(spec, stochastic_depth=0.1)


def test_any_timm_model_is_counted_without_memory_for_its_weights():
    assert models.count(ArchSpec("resnet18", {"num_classes": 1000}, 224)) == 11_689_512
    assert models.count(ArchSpec("vit_giant_patch14_224", {"num_classes": 1000}, 224)) > 1_000_000_000


@pytest.mark.parametrize("name", ["no_such_model", "hf-hub:someone/model", "local-dir:/tmp", "http://host/x"])
def test_only_entry_points_of_timm_are_built(name):
    with pytest.raises(ValueError, match="not an entry point of timm"):
        models.build(ArchSpec(name, {}, 32))


@pytest.mark.parametrize("argument", ["pretrained", "checkpoint_path", "pretrained_cfg"])
def test_arguments_that_load_weights_are_refused(argument):
    with pytest.raises(ValueError, match=argument):
        models.build(ArchSpec("resnet18", {argument: True}, 32))


def test_a_stem_stride_that_the_baseline_has_not_is_refused():
    args = {"channels": [4, 8, 16, 32], "layers": [1, 1, 1, 1], "stem_stride": 3}
    with pytest.raises(ValueError, match="stem_stride: 3"):
        models.build(ArchSpec("paretovit_resnet", args, 32))


@pytest.mark.parametrize("name", ["vit_base_patch16_224", "swin_tiny_patch4_window7_224", "resnet18"])
def test_shapes_alone_are_those_of_the_network_and_take_no_memory(name):
    spec = ArchSpec(name, {"in_chans": 3, "num_classes": 10}, 224)
    shapes = {key: value.shape for key, value in models.build(spec).state_dict().items()}
    outline = models.build_shapes(spec).state_dict()
    assert {key: value.shape for key, value in outline.items()} == shapes
    assert all(value.is_meta for value in outline.values())
