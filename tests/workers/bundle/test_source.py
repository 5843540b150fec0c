"""The text of modeling.py is this program's own, whatever is exported."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from spaces import entry_points
from workers.bundle import modeling
from workers.bundle.source import PREFIX, home_of, modeling_source

NAMES = [entry_point.__name__ for entry_point in entry_points.ENTRY_POINTS]


def functions(text: str) -> set[str]:
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def test_a_network_of_timm_needs_the_template_alone() -> None:
    text = modeling_source("vit_base_patch16_224")
    assert text == Path(modeling.__file__).read_text()
    assert "paretovit_" not in text


@pytest.mark.parametrize("entry_point", entry_points.ENTRY_POINTS)
def test_networks_of_ours_bring_their_definitions_along(entry_point) -> None:
    text = modeling_source(entry_point.__name__)
    compile(text, "modeling.py", "exec")
    assert {entry_point.__name__, "load", "preprocess", "main"} <= functions(text)
    assert text.count("\nENTRY_POINTS") == text.count("\ndefault_cfgs") == 1
    others = {name for name in NAMES if home_of(name) != home_of(entry_point.__name__)}
    assert not others & functions(text)


def test_networks_of_ours_are_known_by_their_prefix() -> None:
    assert all(name.startswith(PREFIX) for name in NAMES)
    for one in entry_points.ENTRY_POINTS:
        assert one.__name__ in sys.modules[one.__module__].default_cfgs


@pytest.mark.parametrize("model", ["vit_base_patch16_224", "paretovit_resnet"])
def test_it_imports_torch_timm_and_what_those_bring(model: str) -> None:
    tree = ast.parse(modeling_source(model))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    standard = {"__future__", "json", "os", "sys", "collections", "pathlib", "typing", "functools"}
    assert {name.partition(".")[0] for name in named} - standard == {
        "numpy",
        "timm",
        "torch",
        "PIL",
        "safetensors",
    }


def test_nothing_that_is_exported_gets_into_the_text() -> None:
    assert modeling_source('paretovit_"; import os') == modeling_source("resnet18")
    assert modeling_source('x"; import os') == modeling_source("resnet18")
