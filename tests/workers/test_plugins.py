from __future__ import annotations

import sys

import pytest

from workers.errors import MachineError
from workers.plugins import allowed, bringing, load_plugins


def test_only_modules_named_at_the_start_are_imported_and_once(monkeypatch, tmp_path):
    (tmp_path / "our_family.py").write_text("count = globals().get('count', 0) + 1\n")
    (tmp_path / "not_named.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PARETOVIT_PLUGINS", " our_family, ")
    load_plugins()
    load_plugins()
    assert sys.modules.pop("our_family").count == 1
    assert "not_named" not in sys.modules


def test_without_the_variable_nothing_is_imported(monkeypatch):
    monkeypatch.delenv("PARETOVIT_PLUGINS", raising=False)
    before = set(sys.modules)
    load_plugins()
    assert set(sys.modules) == before


def test_a_plugin_that_is_not_here_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setenv("PARETOVIT_PLUGINS", "no_such_family")
    with pytest.raises(MachineError, match=r"plugin 'no_such_family' .* PYTHONPATH"):
        load_plugins()


@pytest.mark.parametrize(
    "text, reason", [("1 / 0\n", "ZeroDivisionError: division by zero"), ("class\n", "SyntaxError")]
)
def test_a_plugin_that_does_not_survive_its_import_is_the_machines_fault_not_a_candidates(
    text, reason, monkeypatch, tmp_path
):
    (tmp_path / "broken_family.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PARETOVIT_PLUGINS", "broken_family")
    with pytest.raises(MachineError, match=f"plugin 'broken_family' cannot be imported: {reason}"):
        load_plugins()


def test_what_is_allowed_is_known_without_importing_it_and_so_is_what_brings_a_module(monkeypatch):
    monkeypatch.setenv("PARETOVIT_PLUGINS", "mine, other.nets,")
    assert allowed() == ("mine", "other.nets")
    assert bringing("mine") == bringing("mine.blocks") == "mine"
    assert bringing("other.nets.deep") == "other.nets"
    assert bringing("minecraft") == "mine, other.nets"
    monkeypatch.delenv("PARETOVIT_PLUGINS")
    assert bringing("minecraft") == "minecraft"
