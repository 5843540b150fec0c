from __future__ import annotations

import random
import subprocess
import sys

import pytest

from dashboards import words
from spaces.baselines import default_baseline
from spaces.entry_points import ENTRY_POINTS
from spaces.models import count
from spaces.registry import make_space
from spaces.spec import Task


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        ("accuracy", 0.91349, "0.913"),
        ("accuracy", 1.0, "1.000"),
        ("latency_ms", 0.41267, "0.413"),
        ("latency_ms", 12.345, "12.3"),
        ("throughput", 26668.4, "26,668"),
        ("params", 12_345, "12.3k"),
        ("params", 812, "812"),
        ("flops", 1_230_000_000, "1.23G"),
        ("peak_memory_mb", 0.0, "0"),
        ("latency_ms", None, "–"),
        ("latency_ms", float("nan"), "–"),
        ("latency_ms", 0.00000123, "0.00000123"),
    ],
)
def test_numbers_are_plain_and_have_three_digits(quantity: str, value: float | None, text: str) -> None:
    assert words.number(quantity, value) == text


def test_an_interval_shows_both_bounds_and_none_is_empty() -> None:
    assert words.interval("accuracy", (0.9063, 0.9634)) == "0.906–0.963"
    assert words.interval("accuracy", None) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (3.21, "3.2 s"), (45, "45 s"), (200.4, "3 min 20 s"), (25_500, "7 h 5 min")],
)
def test_durations_are_said_in_the_largest_two_units(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


def test_a_point_is_one_line_without_its_family() -> None:
    point = {
        "family": "vit",
        "vit.patch_size": 4,
        "vit.depths": [1, 2],
        "vit.class_token": True,
        "vit.mlp": 2.0,
    }
    text = words.architecture("vit", point, "vit_base")
    assert text == "patch_size=4, depths=1-2, class_token=yes, mlp=2"
    assert words.architecture("baseline", {}, "resnet10t") == "resnet10t"


def test_the_rebuild_line_is_python_that_gives_the_same_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    args = {"img_size": 8, "depths": [1, 2], "pool": "a'b\"c"}
    line = words.rebuild("swin_x", args)
    called: dict[str, object] = {}

    class Timm:
        @staticmethod
        def create_model(name: str, **given: object) -> None:
            called.update(given, name=name)

    monkeypatch.setitem(sys.modules, "timm", Timm)
    exec(line)
    assert called == args | {"name": "swin_x"}


def test_the_rebuild_line_runs_as_it_is_pasted() -> None:
    task = Task(image_size=32, channels=3, num_classes=10)
    spaces = [make_space(task, families=[family]) for family in ("hybrid", "vit")]
    specs = [space.spec(space.sample(random.Random(0))) for space in spaces] + [
        default_baseline(task, 100_000)
    ]
    assert [spec.model.startswith("paretovit_") for spec in specs] == [True, False, True]
    for spec in specs:
        imports, _, call = words.rebuild(spec.model, spec.args).partition("; ")
        pasted = f"{imports}; print(sum(p.numel() for p in {call}.parameters()))"
        done = subprocess.run(
            [sys.executable, "-c", pasted], capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode, done.stdout) == (0, f"{count(spec)}\n"), done.stderr


def test_the_rebuild_line_imports_the_users_module_where_there_is_one() -> None:
    assert (
        words.rebuild("own_net", {"depth": 2}, "mine")
        == "import timm, mine; timm.create_model('own_net', depth=2)"
    )
    assert words.rebuild("vit_x", {}, None) == "import timm; timm.create_model('vit_x')"


def test_the_rebuild_line_knows_all_models_of_ours() -> None:
    for entry_point in ENTRY_POINTS:
        assert "spaces.models" in words.rebuild(entry_point.__name__, {})


def test_text_for_a_terminal_holds_no_control_characters() -> None:
    assert words.printable("a\x1b[2Jb\nc\u202ed é 数") == "a?[2Jb?c?d é 数"
