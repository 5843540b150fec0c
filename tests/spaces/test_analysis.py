"""The closed forms, pinned, and what they refuse."""

from __future__ import annotations

import pytest
import timm
import torch
from torch.utils.flop_counter import FlopCounterMode

from spaces import models
from spaces.analysis import analyse, knows
from spaces.registry import FAMILIES, published_size
from spaces.spec import ArchSpec

FIGURES = [
    ("vit_base_patch16_224", (86_567_656, 35_127_656_448, 197, 23_895_544)),
    ("deit_tiny_patch16_224", (5_717_416, 2_507_366_400, 197, 5_974_636)),
    ("swin_tiny_patch4_window7_224", (28_288_354, 8_981_133_312, 3136, 17_055_352)),
    ("pit_s_224", (23_461_912, 5_741_592_192, 730, 11_564_596)),
]


@pytest.mark.parametrize(("name", "expected"), FIGURES)
def test_the_field_s_models_have_their_known_figures(name, expected):
    spec = ArchSpec(name, {"in_chans": 3, "num_classes": 1000}, 224)
    known = analyse(spec)
    assert (known.params, known.flops, known.tokens, known.activations) == expected
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        models.build(spec).eval()(torch.empty(1, 3, 224, 224))
    assert counter.get_total_flops() == known.flops


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vit_base_patch16_224", (12, 768, 64, 0, 0)),
        ("swin_tiny_patch4_window7_224", (12, 368, 32, 10 / 12, 0)),
        ("pit_s_224", (12, 360, 48, 0, 0.001)),
        ("resnet18", (0, 0, 0, 0, 0.999)),
    ],
)
def test_the_field_s_models_have_their_known_shapes(name, expected):
    known = analyse(ArchSpec(name, {"in_chans": 3, "num_classes": 1000}, 224))
    shape = (known.depth, known.width, known.head_width, known.sparse_share, known.convolution_share)
    assert shape == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(
    "name", [name for family in FAMILIES.values() for name in family.named if timm.is_model(name)]
)
def test_a_named_model_of_timm_has_the_parameters_of_its_point(name):
    spec = ArchSpec(name, {}, published_size(name))
    assert models.count(spec) == analyse(spec).params


@pytest.mark.parametrize(
    "spec",
    [
        ArchSpec("resnet26", {}, 224),
        ArchSpec("resnet18", {"output_stride": 16}, 224),
        ArchSpec("vit_base_patch16_224", {"pre_norm": True}, 224),
        ArchSpec("vit_base_patch16_224", {"reg_tokens": -1}, 224),
        ArchSpec("vit_base_patch16_224", {"pos_embed": "rotary"}, 224),
        ArchSpec("vit_relpos_base_patch16_224", {}, 224),
        ArchSpec("vit_base_patch16_224", {"img_size": 224, "global_pool": "map"}, 224),
        ArchSpec("vit_base_patch16_224", {"img_size": 224}, 256),
        ArchSpec("swin_tiny_patch4_window7_224", {"window_size": [7, 7, 7, 7]}, 224),
        ArchSpec("swin_tiny_patch4_window7_224", {"depths": [2, 2]}, 224),
        ArchSpec("paretovit_conv_stem_vit", {"img_size": 32}, 32),
        ArchSpec("vit_base_patch16_224", {"patch_size": "16"}, 224),
        ArchSpec("vit_base_patch16_224", {"patch_size": 0}, 224),
        ArchSpec("vit_base_patch16_224", {"depth": True}, 224),
    ],
)
def test_what_has_no_closed_form_is_said_and_not_guessed(spec):
    assert not knows(spec)
    with pytest.raises(ValueError, match="no closed form"):
        analyse(spec)
