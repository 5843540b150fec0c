from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from workers.errors import WeightsError
from workers.weights import find_local, locate, reachable

NAME = "deit_tiny_patch16_224.fb_in1k"
CONTENT = b"numbers" * 1000
COMMIT = "c" * 40


@dataclass
class Hub:
    """A hub on this machine. files: path below the root -> content. delay: seconds before each answer."""

    files: dict[str, bytes] = field(default_factory=dict)
    delay: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    cut: bool = False
    url: str = ""


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()

    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_content=False)

        def do_GET(self) -> None:
            self._answer(with_content=True)

        def _answer(self, with_content: bool) -> None:
            made.asked.append((self.command, self.path))
            time.sleep(made.delay)
            content = made.files.get(self.path)
            if content is None:
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", '"e7a6"')
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if with_content:
                self.wfile.write(content[:10] if made.cut else content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def elsewhere(tmp_path: Path, hub: Hub) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a process with an empty cache, whose hub is `hub`: both are fixed when the library is imported."""

    def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_ENDPOINT": hub.url,
            "PATH": "/usr/bin:/bin",
        } | variables
        lines = [
            "from workers.weights import locate, reachable",
            "from workers.errors import *",
            f"NAME = {NAME!r}",
        ]
        return subprocess.run(
            [sys.executable, "-c", "\n".join([*lines, code])],
            env=environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_file_of_the_folder_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.pth"
    path.touch()
    assert locate(NAME, str(tmp_path)) == path
    assert reachable(NAME, str(tmp_path))
    safe = tmp_path / f"{NAME}.safetensors"
    safe.touch()
    assert find_local(NAME, str(tmp_path)) == safe


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".hidden", "a\nb", "a" * 200, "a b"])
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    (tmp_path / "secret.safetensors").touch()
    assert not reachable(name, str(folder))
    with pytest.raises(WeightsError, match="no name of pretrained weights"):
        locate(name, str(folder))


def test_weights_of_the_hub_are_downloaded_once_and_then_need_no_network(hub: Hub, elsewhere) -> None:
    hub.files[f"/timm/{NAME}/resolve/main/model.safetensors"] = CONTENT
    code = "beats = []; print(reachable(NAME, None), locate(NAME, None, lambda: beats.append(1)), len(beats) > 0)"
    first = elsewhere(code)
    said, path, has_beaten = first.stdout.split()
    assert (said, has_beaten, first.stderr) == ("True", "True", "")
    assert Path(path).read_bytes() == CONTENT
    assert COMMIT in path
    hub.asked.clear()
    again = elsewhere("print(reachable(NAME, None), locate(NAME, None))", HF_HUB_OFFLINE="1")
    assert again.stdout.split() == ["True", path]
    assert hub.asked == []


def test_a_hub_that_has_only_older_files_will_do(hub: Hub, elsewhere) -> None:
    hub.files[f"/timm/{NAME}/resolve/main/pytorch_model.bin"] = CONTENT
    found = elsewhere("print(reachable(NAME, None), locate(NAME, None))").stdout.split()
    assert found[0] == "True"
    assert found[1].endswith("pytorch_model.bin")


def test_weights_that_are_nowhere_are_asked_for_by_the_file_that_is_needed(hub: Hub, elsewhere) -> None:
    code = """
for folder in (None, "/models"):
    print(reachable(NAME, folder))
    try:
        locate(NAME, folder)
    except WeightsError as error:
        print(error)
"""
    lines = elsewhere(code).stdout.splitlines()
    assert lines[0] == lines[2] == "False"
    assert lines[1].endswith(f"put them into a folder that training.weights_dir names as {NAME}.safetensors")
    assert lines[3].endswith(f"put them into /models as {NAME}.safetensors")
    asked = len(hub.asked)
    offline = elsewhere(code, HF_HUB_OFFLINE="1").stdout.splitlines()
    assert (offline, len(hub.asked)) == (lines, asked)


def test_a_hub_that_does_not_answer_is_waited_for_two_seconds(hub: Hub, elsewhere) -> None:
    hub.delay = 8.0
    code = "import time; start = time.monotonic(); print(reachable(NAME, None), time.monotonic() - start)"
    said, seconds = elsewhere(code).stdout.split()
    assert said == "False"
    assert 1.5 < float(seconds) < 5


def test_a_machine_without_a_network_knows_at_once(elsewhere) -> None:
    code = """
import time
start = time.monotonic()
try:
    locate(NAME, None)
except WeightsError:
    print(reachable(NAME, None), time.monotonic() - start < 5)
"""
    assert elsewhere(code, HF_ENDPOINT="http://127.0.0.1:9").stdout.split() == ["False", "True"]


def test_a_download_that_breaks_off_may_be_tried_again(hub: Hub, elsewhere) -> None:
    hub.files[f"/timm/{NAME}/resolve/main/model.safetensors"] = CONTENT
    hub.cut = True
    code = """
import time
time.sleep = lambda seconds: None
try:
    locate(NAME, None)
except WeightsError:
    print("never again")
except MachineError as error:
    print(error)
"""
    found = elsewhere(code)
    assert found.stdout.startswith(f"weights {NAME}: the download broke off: "), found.stderr
    hub.cut = False
    assert Path(elsewhere("print(locate(NAME, None))").stdout.strip()).read_bytes() == CONTENT


def test_finding_weights_needs_no_torch(elsewhere) -> None:
    assert (
        elsewhere("import sys; print('torch' in sys.modules, 'timm' in sys.modules)").stdout
        == "False False\n"
    )
