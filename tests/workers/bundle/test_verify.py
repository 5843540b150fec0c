"""What `verify` notices of a real exported model, and what it never runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from workers.bundle import manifest, verify
from workers.bundle.source import modeling_source
from workers.errors import ExportError

Copy = Callable[[Path], Path]
Reseal = Callable[[Path], None]
RUN = subprocess.run
FILES = (*sorted(manifest.REQUIRED | manifest.OPTIONAL), manifest.NAME)


def refusal(folder: Path) -> str:
    with pytest.raises(ExportError) as found:
        verify.verify(folder)
    assert len(str(found.value).splitlines()) == 1
    return str(found.value)


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be run."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", fail)


@pytest.fixture(scope="module")
def model(exported: Callable[..., Path]) -> Path:
    return exported("vit", onnx=True)


def test_an_exported_model_checks_out_and_says_with_what(model: Path) -> None:
    found = verify.verify(model)
    assert set(found.files) == set(FILES)
    assert found.differences.keys() == {"modeling.py", "model.onnx"}
    assert max(found.differences.values()) < 1e-5 < found.tolerance
    assert found.num_images == 32
    assert found.versions["torch"] == str(torch.__version__)


@pytest.mark.parametrize("place", [0.0, 0.01, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("no_process")
def test_a_flipped_bit_anywhere_fails_with_the_file_named(
    model: Path, copy: Copy, name: str, place: float
) -> None:
    path = copy(model) / name
    content = bytearray(path.read_bytes())
    content[round(place * (len(content) - 1))] ^= 1
    path.write_bytes(content)
    assert f"{name} " in refusal(path.parent)


@pytest.mark.usefixtures("no_process")
def test_code_that_is_not_ours_is_never_run_even_where_the_manifest_fits(
    model: Path, copy: Copy, reseal: Reseal, tmp_path: Path
) -> None:
    folder = copy(model)
    path = folder / "modeling.py"
    path.write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n{path.read_text()}")
    reseal(folder)
    assert "modeling.py is not what this paretovit writes, and is not run" in refusal(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("no_process")
def test_a_file_that_python_would_import_stops_it(model: Path, copy: Copy, reseal: Reseal) -> None:
    folder = copy(model)
    (folder / "torch.py").write_text("raise SystemExit")
    reseal(folder)
    assert "torch.py is no part of the export" in refusal(folder)


def test_a_model_is_run_from_our_text_and_never_from_the_folders(
    model: Path, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when the folder's file changes after it was looked at."""
    folder = copy(model)
    commands = []

    def swap(command: list[str], **options: Any) -> Any:
        (folder / "modeling.py").write_text("raise SystemExit(7)")
        commands.append((command, options["input"].decode()))
        return RUN(command, **options)

    monkeypatch.setattr(subprocess, "run", swap)
    assert verify.verify(folder).differences["modeling.py"] < 1e-5
    (command, text), *more = commands
    assert command[:4] == [sys.executable, "-I", "-B", str(Path(verify.__file__).with_name("recheck.py"))]
    assert text == modeling_source("vit_base_patch16_224")
    assert not more


def test_a_spec_that_would_load_other_weights_is_refused(model: Path, copy: Copy, reseal: Reseal) -> None:
    folder = copy(model)
    spec = json.loads((folder / "spec.json").read_text())
    spec["args"]["checkpoint_path"] = "evil.pth"
    (folder / "spec.json").write_text(json.dumps(spec))
    reseal(folder)
    said = refusal(folder)
    assert said.startswith(f"{folder}: spec.json: ValueError: argument 'checkpoint_path' is not allowed")


NO_SPECS = {
    "a list": "[]",
    "empty": "{}",
    "no JSON": "nothing",
    "no UTF-8": b"\xff{}",
    "a list for a model": '{"model": ["x"], "args": {}, "image_size": 8}',
    "a number for arguments": '{"model": "x", "args": 8, "image_size": 8}',
    "an infinite size": '{"model": "x", "args": {}, "image_size": Infinity}',
    "a size beyond floats": '{"model": "x", "args": {}, "image_size": 1e999}',
    "no size": '{"model": "x", "args": {}, "image_size": NaN}',
    "a size of 5,000 digits": f'{{"model": "x", "args": {{}}, "image_size": {"9" * 5000}}}',
    "an infinite argument": '{"model": "x", "args": {"depth": Infinity}, "image_size": 8}',
    "endless nesting": "[" * 200_000,
    "a large file": " " * 2_000_000,
}


@pytest.mark.parametrize("text", NO_SPECS.values(), ids=NO_SPECS.keys())
@pytest.mark.usefixtures("no_process")
def test_what_is_no_spec_fails(model: Path, copy: Copy, reseal: Reseal, text: str | bytes) -> None:
    folder = copy(model)
    (folder / "spec.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    reseal(folder)
    assert "spec.json is no description of a network" in refusal(folder)


def test_other_weights_give_other_scores(model: Path, copy: Copy, reseal: Reseal) -> None:
    folder = copy(model)
    weights = load_file(folder / "model.safetensors")
    weights["head.bias"] = weights["head.bias"] + torch.tensor([0.01, *[0.0] * 9])
    save_file(weights, folder / "model.safetensors")
    reseal(folder)
    assert "modeling.py gives other scores than those stored: they differ by 0.01" in refusal(folder)


def test_another_onnx_model_is_named(model: Path, copy: Copy, reseal: Reseal) -> None:
    import onnx
    from onnx import numpy_helper

    folder = copy(model)
    graph = onnx.load(folder / "model.onnx")
    bias = next(one for one in graph.graph.initializer if one.name == "head.bias")
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + 0.01, "head.bias"))
    onnx.save(graph, folder / "model.onnx")
    reseal(folder)
    assert "model.onnx gives other scores than those stored" in refusal(folder)


def test_scores_of_another_shape_do_not_pass(model: Path, copy: Copy, reseal: Reseal) -> None:
    folder = copy(model)
    sample = load_file(folder / "sample.safetensors")
    save_file(sample | {"scores": sample["scores"][:, :1].contiguous()}, folder / "sample.safetensors")
    reseal(folder)
    assert "modeling.py gives other scores than those stored: they differ by inf" in refusal(folder)


def answering(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Puts another program in the place of the check's."""
    monkeypatch.setattr(
        subprocess, "run", lambda _command, **options: RUN([sys.executable, "-c", code], **options)
    )


def test_an_onnx_model_is_not_taken_for_checked_without_onnxruntime(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"differences": {"modeling.py": 0.0, "model.onnx": None}, "largest": 1.0}
    answering(monkeypatch, f"print({json.dumps(found)!r})")
    assert "model.onnx cannot be checked without onnxruntime: pip install 'paretovit[export]'" in refusal(
        model
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [("model.safetensors", "SafetensorError: "), ("preprocessing.json", "KeyError: 'pixels_size'")],
)
def test_a_file_that_cannot_be_used_is_named(
    model: Path, copy: Copy, reseal: Reseal, name: str, told: str
) -> None:
    folder = copy(model)
    (folder / name).write_text("{}")
    reseal(folder)
    assert refusal(folder).startswith(f"{folder}: {name}: {told}")


def test_a_process_that_dies_is_told(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, r"raise RuntimeError('out of luck\x1b[31m')")
    assert "the model does not run: RuntimeError: out of luck?[31m" in refusal(model)
    answering(monkeypatch, "import os; os.abort()")
    assert "the model does not run: its process was ended by SIGABRT; a check may take " in refusal(model)
    answering(monkeypatch, "raise SystemExit(7)")
    assert "the model does not run: exit code 7" in refusal(model)


def test_a_process_that_hangs_is_ended(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "MAX_SECONDS", 0.2)
    answering(monkeypatch, "import time; time.sleep(60)")
    assert "gave no answer in 0.2 seconds, more than a check may take; look at spec.json" in refusal(model)


def test_a_process_ends_by_itself_when_nobody_waits_for_it(model: Path) -> None:
    script = Path(verify.__file__).with_name("recheck.py")
    command = [sys.executable, "-I", "-B", str(script), str(model), str(10**9), "0.1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)  # which waits for a text that does not come
    try:
        assert process.wait(120) == -signal.SIGALRM
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_network_that_is_too_large_fails_with_the_limit_named(
    model: Path, copy: Copy, reseal: Reseal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it asks for, 3 GB a layer, would fit into this machine."""
    monkeypatch.setenv("PARETOVIT_JOB_MEMORY_MB", "500")
    assert verify.verify(model).differences["modeling.py"] < 1e-5
    folder = copy(model)
    spec = json.loads((folder / "spec.json").read_text())
    spec["args"] |= {"embed_dim": 16_000, "depth": 1000}
    (folder / "spec.json").write_text(json.dumps(spec))
    reseal(folder)
    said = refusal(folder)
    assert said.startswith(f"{folder}: spec.json: RuntimeError: ")
    assert said.endswith("a check may take 500 MB: free memory, or give it more with PARETOVIT_JOB_MEMORY_MB")


def test_looking_at_the_files_loads_no_torch(model: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from workers.bundle import manifest, verify;"
        "manifest.check(Path(sys.argv[1])); print({'torch', 'timm', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_text_that_is_run_is_the_one_in_the_folder(model: Path) -> None:
    assert (model / "modeling.py").read_text() == modeling_source("vit_base_patch16_224")
