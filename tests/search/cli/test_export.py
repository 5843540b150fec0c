"""`paretovit export` and `verify` on a real, tiny search."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from search import export as exports
from search import launch
from search.cli.main import main
from search.config import from_dict
from search.errors import UserError
from workers.bundle import manifest
from workers.runtimes import onnx_runtime

CONFIG: dict[str, Any] = {
    "name": "mini",
    "data": {"source": "digits", "train_limit": 100, "val_limit": 50},
    "space": {"preset": "tiny", "families": ["vit"], "vit": {"depth": [1], "heads": [1], "head_width": [16]}},
    "training": {"epochs": 1, "batch_size": 50},
    "cost": {"device": "cpu", "max_seconds": 0.05},
    "search": {"max_candidates": 1, "rungs": [1], "engine": "inline"},
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search with one finished candidate and a finished baseline."""
    path = tmp_path_factory.mktemp("export") / "mini.db"
    launch.start(from_dict(CONFIG), str(path), lambda _: None)
    return path


@pytest.fixture
def run(database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the database and returns (exit code, standard output, standard error)."""
    monkeypatch.setenv("PARETOVIT_DB", str(database))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return run


def checkpoint_of(database: Path, run: Run, which: str = "1") -> Path:
    return Path(json.loads(run("show", "mini", which, "--json")[1])["artifacts"][-1]["path"])


def test_a_candidate_comes_home_and_checks_out(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "models" / "mini-1"
    code, out, err = run("export", "mini", "1", "--to", str(target))
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(f"#1 of mini: exported to {target}, 7 files, ")
    assert "on the sample of 32 images, scores differ from the stored ones by at most: modeling.py 0" in out
    point = json.loads(run("front", "mini", "--json")[1])["front"][0]
    facts = json.loads((target / "manifest.json").read_text())
    assert (facts["values"], facts["intervals"]) == (point["values"], point["intervals"])
    assert f"{point['values']['accuracy']:.3f}" in (target / "README.md").read_text()

    code, out, err = run("verify", str(target))
    assert (code, err) == (0, "")
    assert out.startswith(f"{target}: 7 files as in the manifest; run in a process of its own (torch ")
    found = json.loads(run("verify", str(target), "--json")[1])
    assert set(found) == {"folder", "files", "num_images", "differences", "tolerance", "versions"}
    assert found["differences"]["modeling.py"] <= 1e-6 < found["tolerance"]

    weights = bytearray((target / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (target / "model.safetensors").write_bytes(weights)
    code, out, err = run("verify", str(target))
    assert (code, out) == (1, "")
    assert err == f"paretovit: {target}: model.safetensors has changed since it was exported\n"


def test_a_baseline_comes_home_with_onnx_and_without_images(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(
        "export", "mini", "resnet", "--to", str(tmp_path / "resnet"), "--onnx", "--without-images"
    )
    assert code == 0
    assert "the sample holds no validation images but noise" in out
    assert "32 noise images" in (tmp_path / "resnet" / "README.md").read_text()
    assert "model.onnx" in out
    assert {path.name for path in (tmp_path / "resnet").iterdir()} == {
        *manifest.REQUIRED,
        *manifest.OPTIONAL,
        manifest.NAME,
    }


def not_empty(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "mine.txt").touch()


def a_file(folder: Path) -> None:
    (folder / "model").touch()


def nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("arguments", "before", "told"),
    [
        (["mine", "1"], nothing, "no search 'mine' in the database; did you mean 'mini'?"),
        (["mini", "7"], nothing, "no candidate 7: there are 1 to 1"),
        (["mini", "vgg"], nothing, "no baseline 'vgg'; there are: resnet"),
        (["mini", "1"], not_empty, "model: is not empty; give a folder that is new or empty"),
        (["mini", "1"], a_file, "model: is a file; give a folder that is new or empty"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(
    run: Run, tmp_path: Path, arguments: list[str], before: Callable[[Path], None], told: str
) -> None:
    before(tmp_path)
    there = sorted(tmp_path.rglob("*"))
    code, out, err = run("export", *arguments, "--to", str(tmp_path / "model"))
    assert (code, out) == (1, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == there


def test_a_missing_or_damaged_checkpoint_is_named_and_nothing_is_written(
    database: Path, run: Run, tmp_path: Path
) -> None:
    path = checkpoint_of(database, run)
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-1])
        code, _, err = run("export", "mini", "1", "--to", str(tmp_path / "model"))
        assert code == 1
        assert f"{path}: has changed since it was written" in err
        path.unlink()
        code, _, err = run("export", "mini", "1", "--to", str(tmp_path / "model"))
        assert code == 1
        assert f"#1 of mini: its checkpoint {path} is missing; bring the search's artifacts back" in err
    finally:
        path.write_bytes(content)
    assert list(tmp_path.iterdir()) == []


def test_the_missing_extra_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_runtime, "PACKAGES", ("no_such_package",))
    code, _, err = run("export", "mini", "1", "--to", str(tmp_path / "model"), "--onnx")
    assert code == 1
    assert err == (
        "paretovit: ONNX needs no_such_package, which an extra brings: pip install 'paretovit[export]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_export_needs_to_know_where_to(run: Run) -> None:
    code, _, err = run("export", "mini", "1")
    assert code == 2
    assert "--to" in err


def is_dead(process: psutil.Process) -> bool:
    """Also where its parent, which is no more, has not looked."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_is_told_to_end_leaves_nothing_and_nothing_running(
    database: Path, tmp_path: Path, number: signal.Signals
) -> None:
    there, temporary = tmp_path / "models", tmp_path / "tmp"
    there.mkdir()
    temporary.mkdir()
    command = [sys.executable, "-m", "search.cli.main", "export", "mini", "1"]
    process = subprocess.Popen(
        [*command, "--to", str(there / "new" / "model"), "--db", str(database)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    try:
        checks: list[psutil.Process] = []
        while not checks:  # its check runs, and the folder is complete but for its name
            assert process.poll() is None
            checks = psutil.Process(process.pid).children()
            time.sleep(0.05)
        assert list(there.glob("new/.model.*/manifest.json"))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(there.iterdir()) == list(temporary.iterdir()) == []
    psutil.wait_procs([check for check in checks if not is_dead(check)], timeout=10)
    assert all(is_dead(check) for check in checks)


def test_signals_mean_what_they_did_before_and_after(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for _ in range(2):
            with pytest.raises(UserError):
                exports.verify(tmp_path)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        with exports._interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("name", "told"), [("none", "there is no such folder"), ("", "this is no complete export")]
)
def test_verifying_what_is_no_export_is_one_line(run: Run, tmp_path: Path, name: str, told: str) -> None:
    code, out, err = run("verify", str(tmp_path / name))
    assert (code, out) == (1, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_verify_itself_loads_no_torch_and_needs_no_database(run: Run, tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parent, tmp_path / "folder")
    code = (
        "import sys; from search.cli.main import main; code = main(['verify', sys.argv[1]]);"
        "sys.stderr.write(f\"{code} {sorted({'torch', 'timm', 'ray', 'optuna', 'numpy'} & set(sys.modules))}\")"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "folder")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PARETOVIT_DB": "/nowhere/at/all.db"},
    )
    assert done.stderr.splitlines()[-1] == "1 []"
