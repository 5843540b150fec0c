"""The text of modeling.py is this program's own, whatever is exported."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from spaces import entry_points
from workers.bundle import modeling
from workers.bundle.source import PREFIX, modeling_source


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


def test_networks_of_ours_are_known_by_their_prefix() -> None:
    assert all(entry_point.__name__.startswith(PREFIX) for entry_point in entry_points.ENTRY_POINTS)
    assert entry_points.default_cfgs.keys() == {one.__name__ for one in entry_points.ENTRY_POINTS}


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
    assert modeling_source('paretovit_"; import os') == modeling_source("paretovit_resnet")
    assert modeling_source('x"; import os') == modeling_source("resnet18")
