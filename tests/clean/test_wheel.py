"""The distribution as a user gets it: a wheel in an environment that holds nothing else, used from another folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("spaces", "workers", "search", "dashboards")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that a clone would hold, so that nothing left behind by an earlier build slips in."""
    sources, built = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not (ROOT / name).is_file():
            continue
        target = sources / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(built), str(sources)])
    [found] = built.glob("paretovit-*.whl")
    return found


@pytest.mark.clean
def test_the_wheel_holds_every_module_template_and_migration_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert names == {name for name in filter(None, listed.stdout.split("\0")) if (ROOT / name).is_file()}


@pytest.mark.clean
@pytest.mark.timeout(1500)
def test_the_demonstration_passes_from_an_installed_wheel_in_another_folder(
    wheel: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python, paretovit = environment / "bin" / "python", environment / "bin" / "paretovit"
    run([str(python), "-m", "pip", "install", "--quiet", str(wheel)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "digits.yaml").write_bytes((ROOT / "examples" / "digits.yaml").read_bytes())

    where = run([str(python), "-c", "import search; print(search.__file__)"], elsewhere)
    assert Path(where.strip()).is_relative_to(environment)
    run([str(paretovit), "validate", "digits.yaml"], elsewhere)
    run([str(paretovit), "run", "digits.yaml"], elsewhere)

    status = json.loads(run([str(paretovit), "status", "digits", "--json"], elsewhere))
    counts = status["candidates"]
    assert status["search"]["state"] == "finished"
    assert sum(counts.values()) == 36
    assert counts["finished"] + counts["stopped"] >= 12
    assert counts["rejected"] >= 1
    front = json.loads(run([str(paretovit), "front", "digits", "--json"], elsewhere))
    assert len(front["front"]) >= 2
    assert max(point["values"]["accuracy"] for point in front["front"]) >= 0.9
    assert [point["name"] for point in front["baselines"]] == ["resnet"]
    report = (elsewhere / "paretovit.db.artifacts" / "digits" / "report.html").read_text()
    assert not re.search(r"""<(script|link|img|iframe)\b[^>]*(src|href)=["']?https?://""", report)


def run(command: list[str], folder: Path | None = None) -> str:
    """Output of a command that has to succeed, in an environment that knows nothing of this checkout."""
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=variables | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
