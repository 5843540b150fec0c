"""Commands that messages name: they act on the database that the user named."""

from __future__ import annotations

import shlex

import pytest

from search import hints
from search.cli.main import main


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARETOVIT_DB", raising=False)


def named(text: str) -> list[str]:
    """The words of the command that a message ends with, as a shell reads them."""
    return shlex.split(text[text.rindex(": paretovit ") + 2 :])


def test_without_a_database_a_command_is_what_it_is():
    assert hints.command("resume", "pics") == "paretovit resume pics"


@pytest.mark.parametrize("db", ["t.db", "my searches/it's.db", "$HOME.db"])
def test_the_database_is_named_so_that_a_shell_takes_it_back(db):
    with hints.one_command_line():
        hints.remember(db)
        assert shlex.split(hints.command("resume", "pics")) == ["paretovit", "resume", "pics", "--db", db]


@pytest.mark.parametrize(
    "url, shown",
    [
        ("postgresql://me:s3cret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://host/db?user=me&password=s3cret&sslmode=require", "&password=***&sslmode=require"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
    ],
)
def test_a_password_is_not_shown(url, shown):
    with hints.one_command_line():
        hints.remember(url)
        text = shlex.split(hints.command("status"))[-1]
    assert text.endswith(shown)
    assert "s3cret" not in text


@pytest.mark.parametrize("before, after", [(["--db", "a b.db"], []), ([], ["--db", "a b.db"])])
def test_a_message_names_the_database_of_the_command_line(before, after, capsys):
    assert main(["status", *before, "pics", *after]) == 1
    assert named(capsys.readouterr().err) == ["paretovit", "run", "search.yaml", "--db", "a b.db"]


def test_a_database_of_the_environment_is_not_repeated(monkeypatch, capsys):
    monkeypatch.setenv("PARETOVIT_DB", "e.db")
    assert main(["status"]) == 1
    err = capsys.readouterr().err
    assert "e.db: no such database" in err
    assert named(err) == ["paretovit", "run", "search.yaml"]


def test_the_next_command_line_begins_anew(capsys):
    assert main(["status", "--db", "t.db"]) == 1
    capsys.readouterr()
    assert main(["status"]) == 1
    assert named(capsys.readouterr().err) == ["paretovit", "run", "search.yaml"]


def test_modules_that_the_command_line_allowed_are_allowed_again_where_they_are_needed(monkeypatch, capsys):
    monkeypatch.setenv("PARETOVIT_PLUGINS", "")
    assert main(["--plugin", "a", "--plugin", "b.c", "status"]) == 1
    again = named(capsys.readouterr().err)
    assert again == ["paretovit", "--plugin", "a", "--plugin", "b.c", "run", "search.yaml"]
    with hints.one_command_line():
        hints.remember_plugins(["a"])
        assert hints.command("resume", "pics") == "paretovit --plugin a resume pics"
        assert hints.command("db", "upgrade") == "paretovit db upgrade"
    assert hints.command("resume", "pics") == "paretovit resume pics"
