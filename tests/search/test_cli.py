"""The command line as a whole: which commands and options there are, what they import, how they end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import typer.main

from search.cli import main as cli
from search.config import from_dict
from search.errors import NoFeasibleCandidate, UsageError, UserError

OPTIONS = {
    "": ["--debug", "--plugin", "--version"],
    "init": [
        "--dataset",
        "--deadline",
        "--download",
        "--image-column",
        "--image-size",
        "--label-column",
        "--name",
        "--path",
        "--source",
        "--to",
        "--under",
    ],
    "validate": ["--set"],
    "plan": ["--json", "--set"],
    "run": ["--again", "--db", "--set"],
    "resume": ["--db", "--set"],
    "pause": ["--db", "--note"],
    "stop": ["--db", "--note", "--now"],
    "watch": ["--db"],
    "submit": ["--db", "--json", "--priority", "--set", "--window"],
    "serve": ["--db", "--only", "--port"],
    "status": ["--db", "--json"],
    "front": ["--all", "--csv", "--db", "--device", "--json"],
    "show": ["--db", "--json"],
    "pick": ["--at-least", "--db", "--json", "--knee", "--under", "--weights"],
    "report": ["--db", "--to"],
    "dashboard": ["--db", "--port"],
    "export": ["--db", "--onnx", "--to", "--without-images"],
    "verify": ["--json"],
    "space": ["--channels", "--classes", "--families", "--image-size", "--json", "--named"],
    "measure": [
        "--again",
        "--batch",
        "--bundle",
        "--cache",
        "--channels",
        "--classes",
        "--db",
        "--device",
        "--image-size",
        "--import",
        "--json",
        "--precision",
        "--runtime",
        "--threads",
        "--timm",
    ],
    "delete": ["--confirm", "--db"],
    "doctor": ["--db", "--ray", "--weights-dir"],
    "db": [],
    "db info": ["--db"],
    "db upgrade": ["--db"],
    "db backup": ["--db"],
}


def commands() -> dict[str, list[str]]:
    """Command -> its options, sorted, as typer built them."""
    found = {}

    def walk(name, command):
        found[name] = sorted(
            option for parameter in command.params for option in parameter.opts if option[:2] == "--"
        )
        for child_name, child in getattr(command, "commands", {}).items():
            walk(f"{name} {child_name}".strip(), child)

    walk("", typer.main.get_command(cli.app))
    return found


def test_the_commands_and_options_are_those_that_are_documented():
    assert commands() == OPTIONS


@pytest.mark.parametrize("command", OPTIONS)
def test_every_command_has_a_help_of_its_own(command, capsys):
    assert cli.main([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "Usage: paretovit" in out
    assert "PARETOVIT_" not in out


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The path of a database that holds one search without candidates."""
    from search.store.session import open_store
    from search.store.write import searches

    folder = tmp_path_factory.mktemp("database")
    store = open_store(str(folder / "paretovit.db"), create=True)
    config = from_dict({"name": "hunt", "data": {"source": "digits"}}).to_dict()
    data = {
        "image_size": 8,
        "channels": 1,
        "num_classes": 10,
        "class_names": [],
        "num_images": {},
        "digest": "0",
    }
    store.write(
        lambda session: searches.create(session, "hunt", config, data, str(folder / "artifacts"), None)
    )
    store.close()
    return folder / "paretovit.db"


_SPY = """
import sys
from search.cli.main import main
code = main(sys.argv[1:])
heavy = sorted({"torch", "torchvision", "timm", "ray", "optuna", "pandas", "scipy", "sklearn"} & set(sys.modules))
print("spied", code, heavy, file=sys.stderr)
"""


LIGHT = [["--help"], ["run", "--help"], ["status"], ["status", "hunt", "--json"], ["front", "hunt"]]
LIGHT += [["front", "hunt", "--json"], ["front", "--csv", "--all"], ["space", "--help"], ["db", "info"]]


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_light_commands_import_no_torch_ray_or_optuna(arguments, database):
    done = subprocess.run(
        [sys.executable, "-c", _SPY, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PARETOVIT_DB": str(database)},
        timeout=60,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "spied 0 []", done.stderr


def test_help_takes_little_time_of_the_processor():
    seconds = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-m", "search.cli.main", "--help"], check=True, capture_output=True)
        after = os.times()
        seconds.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    assert min(seconds) < 0.5


@pytest.mark.parametrize(
    "error, code",
    [(UserError("mend it"), 1), (UsageError("mend it"), 2), (NoFeasibleCandidate("mend it"), 3)],
)
def test_each_kind_of_error_has_its_exit_code_and_one_line(error, code, monkeypatch, capsys):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(cli, "app", fail)
    assert cli.main([]) == code
    assert capsys.readouterr().err == "paretovit: mend it\n"
    with pytest.raises(type(error)):
        cli.main(["--debug"])


def test_an_interrupt_ends_with_130(monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupt)
    assert cli.main([]) == 130


def test_a_failing_system_call_is_a_line_not_a_traceback(monkeypatch, capsys):
    def fail(*_arguments, **_options):
        raise PermissionError(13, "Permission denied", "/somewhere/out.html")

    monkeypatch.setattr(cli, "app", fail)
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "paretovit: /somewhere/out.html: Permission denied\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nonsense"], "nonsense"),
        (["validate"], "SEARCH.YAML"),
        (["validate", "a.yaml", "--sett", "x=1"], "--sett"),
        (["init", "--source", "imagenet"], "imagenet"),
        (["db", "nonsense"], "nonsense"),
    ],
)
def test_a_wrong_command_line_is_two_lines_and_exit_2(arguments, words, capsys):
    assert cli.main(arguments) == 2
    err = capsys.readouterr().err.splitlines()
    assert words in err[0]
    assert err[1].startswith("see: paretovit")
    assert len(err) == 2


def test_without_a_command_the_help_is_shown(capsys):
    assert cli.main([]) == 0
    assert "Commands:" in capsys.readouterr().out
    assert cli.main(["db"]) == 0
    assert "backup" in capsys.readouterr().out


def test_the_version_is_the_distributions(capsys):
    from importlib.metadata import version

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"paretovit {version('paretovit')}\n"


def test_the_program_itself_ends_with_the_exit_code(tmp_path):
    program = [sys.executable, "-m", "search.cli.main", "validate", "none.yaml"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "paretovit: none.yaml: no such file; `paretovit init` writes one\n"
    assert done.stdout == ""


def test_variables_set_options(database, monkeypatch, capsys):
    monkeypatch.setenv("PARETOVIT_DB", str(database))
    monkeypatch.setenv("PARETOVIT_FRONT_CSV", "1")
    assert cli.main(["front"]) == 0
    assert "search,candidate" in capsys.readouterr().out.replace(" ", "")


@pytest.mark.parametrize("name", ["PARETOVIT_VERSION", "PARETOVIT_SHOW_VERSION"])
def test_no_variable_turns_a_command_into_the_version(name, database, monkeypatch, capsys):
    monkeypatch.setenv(name, "1")
    assert cli.main(["status", "--db", str(database)]) == 0
    assert "hunt: " in capsys.readouterr().out


def test_db_info_backup_and_upgrade(database, tmp_path, capsys):
    copy = tmp_path / "copy.db"
    assert cli.main(["db", "backup", str(copy), "--db", str(database)]) == 0
    assert cli.main(["db", "info", "--db", str(copy)]) == 0
    out = capsys.readouterr().out
    assert "hunt" in out
    assert str(copy) in out
    assert cli.main(["db", "upgrade", "--db", str(copy)]) == 0
    assert cli.main(["db", "backup", str(copy), "--db", str(database)]) == 2
    assert "not overwritten" in capsys.readouterr().err


def test_a_backup_that_cannot_be_written_leaves_nothing(database, tmp_path, capsys):
    assert cli.main(["db", "backup", str(tmp_path / "none" / "copy.db"), "--db", str(database)]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
