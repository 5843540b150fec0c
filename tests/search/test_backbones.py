"""Networks that a search takes as parts of others."""

from __future__ import annotations

import random
import time

import pytest

from search import config, validate
from search.backbones import backbone_of
from search.errors import UsageError
from spaces import backbone, models


def loaded(data=None, **values):
    space = {"families": ["backbone"], "backbone": values}
    return config.from_dict(
        {"name": "hunt", "data": {"source": "digits"}, "baselines": {}, "space": space} | (data or {})
    )


def checked(**values):
    return validate.check(loaded(**values), time.time()).plan


def test_names_that_are_known_need_no_look_up(monkeypatch):
    monkeypatch.setattr(models, "features", lambda name: pytest.fail(name))
    assert backbone_of(loaded()).networks == backbone.KNOWN
    assert list(backbone_of(loaded(backbone=["resnet34", "resnet10t"])).networks) == ["resnet34", "resnet10t"]


def test_a_network_of_timm_that_is_not_known_validates_and_its_costs_are_those_of_what_is_built():
    plan = checked(backbone=["mobilenetv3_small_050", "resnet10t"], image_size=[8, 28])
    names = set()
    for seed in range(30):
        point = plan.space.sample(random.Random(seed))
        spec = plan.space.spec(point)
        names.add(spec.args["backbone"])
        assert plan.closed_form("backbone", spec)["params"] == models.count(spec)
    assert names == {"mobilenetv3_small_050", "resnet10t"}
    assert len(validate.dry_build(plan, 5).specs) == 5


def test_flops_of_any_network_can_be_limited():
    space = {"families": ["backbone"], "backbone": {"backbone": ["mobilenetv3_small_050"]}}
    values = {"name": "hunt", "data": {"source": "digits"}, "baselines": {}, "space": space}
    plan = validate.check(config.from_dict(values | {"constraints": {"flops": 1e9}}), time.time()).plan
    spec = plan.space.spec(plan.space.sample(random.Random(0)))
    assert plan.closed_form("backbone", spec)["flops"] > 0


def test_of_two_networks_that_are_the_same_so_far_the_first_that_is_listed_is_cut():
    plan = checked(backbone=["resnet34", "resnet18"], image_size=28)
    legal = {
        (p["backbone.backbone"], p["backbone.stage"])
        for p in (plan.space.sample(random.Random(s)) for s in range(300))
    }
    assert ("resnet34", 0) in legal
    assert ("resnet18", 0) not in legal
    assert {("resnet34", 1), ("resnet18", 1)} <= legal


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"backbone": "resnet19"},
            "backbone: 'resnet19' is not an entry point of timm .*; timm has resnet18",
        ),
        ({"backbone": ["resnet18.a1_in1k"]}, "'resnet18.a1_in1k' is no name of a network without weights"),
        (
            {"backbone": "hf-hub:timm/resnet18.a1_in1k"},
            "is no name of a network without weights, such as resnet18",
        ),
        ({"backbone": "../../etc/passwd"}, "is no name of a network without weights"),
        ({"backbone": "resnet18\nresnet34"}, r"'resnet18\\nresnet34' is no name of a network"),
        ({"backbone": "r" * 500}, "'r{60}' is no name of a network"),
        ({"backbone": ""}, "'' is no name of a network"),
        ({"backbone": "paretovit_backbone_vit"}, "is not an entry point of timm"),
        ({"backbone": "gluon_resnet18_v1b"}, "is an old name in timm; the present one is resnet18"),
        ({"backbone": "hardcorenas_a"}, "'hardcorenas_a' has no feature levels in timm"),
        ({"backbone": 18}, "backbone: 18 is not legal; legal: resnet10t"),
        ({"backbone": []}, "backbone: no values; legal: resnet10t"),
        ({"backbone": "mobilenetv3_small_050", "stage": 7}, "stage: 7 is not legal; legal: 0 to 4"),
        (
            {"backbone": "mobilenetv3_small_050", "stage": [1, 2]},
            "stage: 2 .* 1 x 1 tokens of 8 px .* legal: 1",
        ),
        ({"backbone": "swin_tiny_patch4_window7_224", "stage": 1}, "1 x 1 tokens of 8 px images"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_with_what_is_legal(values, says):
    with pytest.raises(UsageError, match=f"space.backbone.*{says}") as refused:
        checked(**values)
    assert len(str(refused.value).splitlines()) == 1
