"""Spaces by name: presets, families, overrides, and what is refused."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest

from spaces.dims import Choice, Condition, Domain
from spaces.registry import (
    FAMILIES,
    PRESETS,
    SpaceError,
    make_space,
    named_space,
    preset_for,
    published_size,
)
from spaces.spec import Task
from spaces.vit import ViT

DIGITS = Task(image_size=8, channels=1, num_classes=10)
FASHION = Task(image_size=28, channels=1, num_classes=10)


def dimension(space, name):
    return next(own for own in space.dimensions if own.name == name)


@pytest.mark.parametrize(
    ("image_size", "preset"),
    [
        (8, "tiny"),
        (32, "tiny"),
        (48, "tiny"),
        (64, "small"),
        (144, "small"),
        (160, "base"),
        (224, "base"),
        (256, "base"),
    ],
)
def test_the_preset_follows_the_image_size(image_size, preset):
    assert preset_for(image_size) == preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_searches_every_family_at_both_ends_of_its_sizes(name):
    for image_size in PRESETS[name].image_sizes:
        task = Task(image_size, 3, 10)
        assert make_space(task, name).families == tuple(PRESETS[name].families)
        for family in PRESETS[name].on_request:
            assert make_space(task, name, families=[family]).families == (family,)


@pytest.mark.parametrize("name", ["tiny", "small", "base"])
def test_every_family_but_the_zoo_is_in_every_preset_for_all_sizes(name):
    preset = PRESETS[name]
    assert {*preset.families, *preset.on_request} == FAMILIES.keys() - {"zoo"}
    assert not preset.families.keys() & preset.on_request.keys()


FIELD = {
    "vit": [
        "vit_tiny_patch16_224",
        "vit_small_patch16_224",
        "vit_small_patch32_224",
        "vit_base_patch16_224",
        "vit_base_patch32_224",
        "deit_tiny_patch16_224",
        "deit_small_patch16_224",
        "deit_base_patch16_224",
    ],
    "deit": [f"deit_{size}_distilled_patch16_224" for size in ("tiny", "small", "base")],
    "swin": [f"swin_{size}_patch4_window7_224" for size in ("tiny", "small", "base")],
    "swinv2": [
        f"swinv2_{size}_window{window}_256" for size in ("tiny", "small", "base") for window in (8, 16)
    ],
    "pit": ["pit_ti_224", "pit_xs_224", "pit_s_224", "pit_b_224"],
    "autoformer": ["autoformer_tiny", "autoformer_small", "autoformer_base"],
}


@pytest.mark.parametrize(("family", "names"), FIELD.items())
def test_the_field_s_networks_lie_in_the_ranges_of_base(family, names):
    for name in names:
        published = named_space(name)
        space = make_space(published.task, "base", families=[family])
        point = published.sample(random.Random(0))
        assert space.illegal(point) is None, name
        assert space.spec(point) == published.spec(point)


@pytest.mark.parametrize("name", PRESETS)
def test_a_space_is_made_in_under_a_second_with_all_families_and_image_sizes(name):
    preset = PRESETS[name]
    every = [*preset.families, *preset.on_request]
    sizes = sorted({*preset.image_sizes, preset.example_size})
    start = time.process_time()
    make_space(Task(preset.example_size, 3, 10), name, families=every, overrides={"image_size": sizes})
    assert time.process_time() - start < 1


def test_a_family_on_request_has_to_be_named():
    with pytest.raises(
        SpaceError,
        match=r"deit: its dimensions are set, but only vit, .* are searched; give space.families: \[vit, .*, deit\]$",
    ):
        make_space(FASHION, overrides={"deit": {"depth": [2]}})


def test_an_override_replaces_the_values_of_one_dimension_only():
    plain = make_space(FASHION)
    changed = make_space(FASHION, overrides={"vit": {"patch_size": [7, 14]}})
    assert dimension(changed, "vit.patch_size").domain == Choice((7, 14))
    assert [own for own in changed.dimensions if own.name != "vit.patch_size"] == [
        own for own in plain.dimensions if own.name != "vit.patch_size"
    ]


def test_a_family_without_a_legal_point_is_left_out_unless_it_is_asked_for():
    task = Task(image_size=25, channels=3, num_classes=10)
    assert make_space(task).families == ("vit", "swin")
    with pytest.raises(SpaceError, match=r"hybrid\.stride: .* 25 px .* 24 and 26"):
        make_space(task, families=["hybrid"])


def test_values_that_no_point_can_have_are_left_out_of_a_preset():
    assert dimension(make_space(DIGITS), "swin.window").domain == Choice((2, 4, 8))


def test_a_switched_dimension_goes_with_its_switch():
    space = make_space(FASHION, families=["swin"], overrides={"swin": {"num_stages": [2]}})
    assert "swin.depth_3" not in [own.name for own in space.dimensions]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"vit": {"patch_size": [4, 5]}}, "vit.patch_size: 5 is not legal; legal: 1, 2, 4, 7, 14"),
        ({"vit": {"depth": [0]}}, "vit.depth: 0 is not legal; legal: 1 to 64"),
        ({"vit": {"depth": 10**6}}, "vit.depth: 1000000"),
        ({"vit": {"depht": [1]}}, "vit: unknown name 'depht'; nearest: depth"),
        ({"vti": {"depth": [1]}}, "unknown name 'vti'; nearest: vit"),
        ({"vit": {"head_width": [7]}}, "vit.head_width: 7"),
        ({"vit": None}, "vit: None"),
        ({"swin": {"window": [64]}}, "window 64 is larger than the map"),
        ({"swin": {"window": [2, 16]}}, "swin.window: 16 is not legal: window 16 is larger"),
        ({"swin": {"patch_size": [7], "num_stages": [3]}}, "one token after 3 stages"),
        ({"swin": {"num_stages": [2], "depth_3": [1]}}, "swin.depth_3: has no effect: it needs num_stages"),
        ({"hybrid": {"stride": [7]}}, "hybrid.stride: 7 is not legal; legal: 1, 2, 4"),
    ],
)
def test_an_override_that_cannot_be_is_refused_with_the_reason(overrides, says):
    with pytest.raises(SpaceError) as refused:
        make_space(FASHION, overrides=overrides)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_more_combinations_than_can_be_enumerated_are_refused_with_the_remedy():
    every = {"shift": [False, True], **{f"depth_{stage}": {"low": 1, "high": 32} for stage in (1, 2, 3)}}
    with pytest.raises(SpaceError, match=r"swin: patch_size, window, .* than 300,000 .*: name fewer values"):
        make_space(FASHION, families=["swin"], overrides={"swin": every})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"preset": "tyni"}, "preset: unknown name 'tyni'; nearest: tiny"),
        ({"families": ["vit", "cnn"]}, "families: unknown name 'cnn'"),
        ({"families": []}, "families: none named"),
        ({"families": "vit"}, "families: 'vit' is not a list"),
        ({"families": ["vit", "vit"]}, "twice"),
        (
            {"families": ["vit"], "overrides": {"swin": {"heads": [1]}}},
            "but only vit is searched; give space.families: [vit, swin]",
        ),
    ],
)
def test_a_wrong_name_is_refused_with_the_legal_ones(arguments, says):
    with pytest.raises(SpaceError) as refused:
        make_space(FASHION, **arguments)
    assert says in str(refused.value)


@pytest.mark.parametrize("task", [Task(0, 3, 10), Task(28, 0, 10), Task(28, 3, 1)])
def test_a_task_that_is_none_is_refused(task):
    with pytest.raises(SpaceError, match="is not a whole number from"):
        make_space(task)


def test_an_image_that_no_patch_divides_is_refused_with_sizes_that_work():
    with pytest.raises(SpaceError, match=r"17 px .* nearest image sizes that work: 16 and 18"):
        make_space(Task(17, 3, 10))


def test_a_named_model_is_a_space_of_one_point():
    space = named_space("deit_tiny_patch16_224")
    point = space.sample(random.Random(0))
    assert space.size() == 1
    assert (point["vit.depth"], point["vit.heads"], point["vit.patch_size"]) == (12, 3, 16)


def test_a_named_model_has_the_image_size_that_it_was_published_for():
    assert named_space("swin_tiny_patch4_window7_224").task == Task(224, 3, 1000)
    assert named_space("swinv2_tiny_window8_256").task == Task(256, 3, 1000)
    assert named_space("swinv2_tiny_window8_256", Task(128, 3, 10)).task.image_size == 128
    with pytest.raises(SpaceError, match="named: unknown name 'swinv3'"):
        published_size("swinv3")


def test_a_named_model_that_no_family_covers_is_refused():
    with pytest.raises(SpaceError, match="named: unknown name 'resnet50'"):
        named_space("resnet50")


def test_a_space_is_made_and_analysed_without_torch():
    code = (
        "import sys, spaces.registry, spaces.analysis, spaces.baselines\n"
        "heavy = {'torch', 'timm', 'numpy', 'optuna'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", PRESETS)
def test_what_any_value_of_another_dimension_switches_on_has_a_range_in_every_preset(name):
    preset = PRESETS[name]
    for family, ranges in {**preset.families, **preset.on_request}.items():
        switched = {key for key, (parent, _) in FAMILIES[family].conditions.items() if parent in ranges}
        assert switched <= ranges.keys(), family


@pytest.mark.parametrize("image_size", [32, 64, 224])
@pytest.mark.parametrize("family", ["swin", "swinv2", "pit", "coatnet"])
def test_four_stages_are_searched_in_every_preset_where_they_are_named(family, image_size):
    space = make_space(Task(image_size, 3, 10), families=[family], overrides={family: {"num_stages": [4]}})
    point = space.sample(random.Random(0))
    assert point[f"{family}.depth_4"] >= 1
    assert space.spec(point).image_size == image_size


@pytest.mark.parametrize("image_size", [32, 64, 224])
def test_an_autoformer_may_be_as_deep_as_is_legal_in_every_preset(image_size):
    space = make_space(
        Task(image_size, 3, 10), families=["autoformer"], overrides={"autoformer": {"depth": 24}}
    )
    assert len(space.spec(space.sample(random.Random(0))).args["num_heads"]) == 24


ANY_DEPTH = {f"depth_{stage}": {"low": 1, "high": 32} for stage in range(1, 5)}


@pytest.mark.parametrize(
    ("swin", "image_sizes", "reason"),
    [
        (
            {"num_stages": 2, "window": [4, 60], "shift": [False], **ANY_DEPTH},
            [28],
            "swin.window: 60 is not legal",
        ),
        (
            {"window": {"low": 2, "high": 16}, "shift": [False, True], "depth_1": {"low": 1, "high": 32}},
            list(range(64, 128, 2)),
            "1,000,000 combinations",
        ),
    ],
    ids=["a reason that is looked for", "many sizes"],
)
def test_a_space_of_any_size_is_made_or_refused_within_seconds(swin, image_sizes, reason):
    swin = {"depth_2": {"low": 1, "high": 16}, "depth_3": {"low": 1, "high": 4}, **swin}
    began = time.process_time()
    with pytest.raises(SpaceError, match=reason):
        make_space(Task(64, 3, 10), "tiny", ["swin"], {"swin": swin, "image_size": image_sizes})
    assert time.process_time() - began < 20


def test_a_value_that_is_named_twice_is_told_once():
    with pytest.raises(SpaceError) as error:
        make_space(FASHION, families=["vit"], overrides={"vit": {"depth": [3] * 50_000}})
    assert str(error.value) == "vit.depth: 3 is named twice; legal: 1 to 64, each once"


class Gated(ViT):
    """Leaves out of its ranges what switches a dimension on."""

    name = "gated"
    conditions: Mapping[str, Condition] = {"registers": ("qk_norm", (True,))}

    def limits(self, task: Task) -> dict[str, Domain]:
        limits = super().limits(task)
        return {"qk_norm": limits.pop("qk_norm"), **limits}

    def ranges(self, task: Task) -> dict[str, Domain]:
        return {key: domain for key, domain in self.limits(task).items() if key != "qk_norm"}


def test_a_dimension_is_refused_where_what_switches_it_on_is_not_searched():
    with pytest.raises(SpaceError, match=r"gated\.registers: has no effect: it needs qk_norm to be true"):
        make_space(
            FASHION, "tiny", ["gated"], {"gated": {"registers": [1], "depth": [1]}}, own={"gated": Gated()}
        )
