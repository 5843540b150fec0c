"""The documents against the program: nothing undocumented, nothing documented that is not there."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from search import config, own_family
from search.cli.main import app
from search.objectives import QUANTITIES
from search.states import CandidateState, JobState, SearchState
from spaces import registry
from spaces.spec import Task

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
CLI = (ROOT / "docs" / "cli.md").read_text()
SETTINGS = (ROOT / "docs" / "config.md").read_text()
SPACES = (ROOT / "docs" / "spaces.md").read_text()
BUILT_IN = {"--help", "-h"}


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(`db info`, command) for every command of the program."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


PROGRAM = typer.main.get_command(app)
COMMANDS = dict(commands(PROGRAM))
OF_THE_PROGRAM = {option for parameter in PROGRAM.params for option in parameter.opts} | BUILT_IN
TAKES_VALUE = {
    option
    for parameter in PROGRAM.params
    if not getattr(parameter, "is_flag", False)
    for option in parameter.opts
}


def section(command: str) -> str:
    """The text of a command's section in docs/cli.md; empty without one."""
    found = re.search(rf"^### {re.escape(command)}\n(.*?)(?=^##|\Z)", CLI, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def rows(table: str) -> dict[str, str]:
    """Setting -> default, of every table row in docs/config.md."""
    return dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", table, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_with_all_its_options(name: str) -> None:
    text = section(name)
    assert text, f"docs/cli.md lacks a section `### {name}`"
    assert f"paretovit {name}" in text
    options = {
        option for parameter in COMMANDS[name].params for option in parameter.opts if option[:2] == "--"
    }
    for option in options - BUILT_IN:
        assert re.search(rf"^\| `{re.escape(option)}[ `]", text, re.MULTILINE), f"{name} {option} has no row"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_option_is_documented_that_a_command_does_not_have(name: str) -> None:
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    documented = set(re.findall(r"^\| `(--[\w-]+)", section(name), re.MULTILINE))
    assert documented <= options


def test_no_command_is_documented_that_does_not_exist() -> None:
    assert set(re.findall(r"^### (.+)$", CLI, re.MULTILINE)) == set(COMMANDS)


def settings() -> list[tuple[str, Any]]:
    """(`search.rungs`, default as JSON, or `...` where it is required or a section) for every setting."""
    found: list[tuple[str, Any]] = []
    for name, kind in config._SECTIONS.items():
        prefix = "baselines.NAME." if name == "baselines" else f"{name}."
        if issubclass(kind, BaseModel):
            pairs = [(key, f.get_default(call_default_factory=True)) for key, f in kind.model_fields.items()]
            required = {key for key, f in kind.model_fields.items() if f.is_required()}
        else:
            fields = dataclasses.fields(kind)
            pairs = [(field.name, field.default) for field in fields]
            required = {field.name for field in fields if field.default is dataclasses.MISSING}
        found += [(prefix + key, ... if key in required else default) for key, default in pairs]
    top = config.SearchConfig.model_fields
    found += [(key, ...) for key in top]
    return found


@pytest.mark.parametrize(("key", "default"), settings(), ids=lambda value: str(value)[:40])
def test_every_setting_is_documented_with_its_default(key: str, default: Any) -> None:
    documented = rows(SETTINGS)
    assert key in documented, f"docs/config.md lacks `{key}`"
    if default is not ...:
        assert documented[key] == f"`{json.dumps(default)}`"


def test_no_setting_is_documented_that_does_not_exist() -> None:
    documented = {key for key in rows(SETTINGS) if not key.startswith("PARETOVIT_")}
    assert documented == {key for key, _ in settings()}


def test_quantities_families_and_presets_are_documented() -> None:
    for name in (*QUANTITIES, *registry.FAMILIES, *registry.PRESETS):
        assert f"`{name}`" in SETTINGS


@pytest.mark.parametrize(
    "family", [name for name in registry.FAMILIES if name not in ("swin", "hybrid", "zoo")]
)
def test_every_dimension_is_documented_in_the_section_of_its_family(family: str) -> None:
    text = re.search(rf"^## {family}\n(.*?)(?=^## |\Z)", SPACES, re.MULTILINE | re.DOTALL)
    assert text, f"docs/spaces.md has no section {family}"
    documented = set(re.findall(r"^\| `(\w+)` \|", text[1], re.MULTILINE))
    dimensions = registry.FAMILIES[family].limits(Task(224, 3, 1000))
    assert documented == {re.sub(r"_\d+$", "_N", name) for name in dimensions}


def test_every_member_of_a_family_of_the_users_own_is_documented() -> None:
    text = (ROOT / "docs" / "own-family.md").read_text()
    assert set(re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", text, re.MULTILINE)) == set(own_family.ALL_MEMBERS)


def test_every_state_is_explained() -> None:
    concepts = (ROOT / "docs" / "concepts.md").read_text()
    for state in (*CandidateState, *SearchState, *JobState):
        assert f"`{state}`" in concepts


def shown_commands() -> list[tuple[str, str]]:
    """(document, command line) of every `paretovit ...` in code blocks, inline code, examples and scripts."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text()
        blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        lines = re.findall(r"^ *paretovit (.*?)(?: *#.*)?$", blocks, re.MULTILINE)
        found += [(path.name, line) for line in lines + re.findall(r"`paretovit ([^`]+)`", text)]
    for path in sorted((ROOT / "examples").iterdir()):
        pattern = r'^ *(?:#|echo ")? *paretovit (.*?)(?: *#.*|")?$'
        found += [(path.name, line) for line in re.findall(pattern, path.read_text(), re.MULTILINE)]
    return found


@pytest.mark.parametrize(("document", "line"), shown_commands())
def test_commands_that_documents_show_exist(document: str, line: str) -> None:
    words = line.replace('"', "").split()
    if words[0].startswith("--"):
        taken = words[:2] if words[0] in TAKES_VALUE else words[:1]
        assert taken[0] in OF_THE_PROGRAM, f"{document} shows `paretovit {line}`"
        words = words[len(taken) :]
        if not words or words == ["..."]:
            return
    name = " ".join(words[:2]) if words[0] == "db" else words[0]
    assert name in COMMANDS, f"{document} shows `paretovit {line}`"
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts} | BUILT_IN
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_readme_shows_the_make_targets_that_there_are() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"`?make (\w+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= shown <= targets


@pytest.mark.parametrize(
    "name", ["digits.yaml", "fashion-mnist.yaml", "folder.yaml", "own-family.yaml", "zoo.yaml"]
)
def test_examples_are_valid_configs(name: str) -> None:
    loaded = config.load(ROOT / "examples" / name)
    assert loaded.search.max_candidates >= 12
    assert {"accuracy", "latency_ms"} <= set(loaded.objectives)
