"""A trained network goes into a folder and gives the same scores in a process that has nothing of ours."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import spaces.models
from spaces.spec import ArchSpec
from workers import checkpoint
from workers.bundle import manifest, verify
from workers.bundle.export import export
from workers.bundle.folder import PARTIAL
from workers.bundle.request import Request
from workers.data.batches import resident
from workers.errors import ExportError
from workers.evaluate import evaluate
from workers.runtimes import onnx_runtime

Trained = Callable[..., Request]
Exported = Callable[..., Path]


def trained_network(request: Request) -> nn.Module:
    network = spaces.models.build(request.spec).eval()
    checkpoint.load_scored(request.artifacts, request.checkpoint, network)
    return network


def pixels_of(folder: Path) -> Tensor:
    return load_file(folder / "sample.safetensors")["pixels"]


# Blocks everything of ours, then answers from the folder alone, and says what it had to import.
ALONE = """
import json, sys
for name in ("spaces", "workers", "search", "dashboards"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
import torch
from safetensors.torch import load_file
import modeling
sample = load_file(sys.argv[1] + "/sample.safetensors")
with torch.inference_mode():
    scores = modeling.load()(modeling.preprocess(sample["pixels"].numpy()))
print(json.dumps([scores.tolist(), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def allowed() -> set[str]:
    """Distributions that torch and timm bring, by their own requirements."""
    found: set[str] = set()
    left = ["torch", "timm"]
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found:
            continue
        found.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        left += [re.split(r"[\s;<>=!~\[(]", need, maxsplit=1)[0] for need in needs if "extra ==" not in need]
    return found


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["vit", "sincos", "rotary", "swin", "hybrid", "backbone", "resnet"])
def test_every_family_answers_the_same_with_torch_and_timm_alone(
    trained: Trained, tmp_path: Path, name: str
) -> None:
    request = trained(name)
    folder = run(request, tmp_path / "model").folder
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", ALONE, str(folder)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    scores, imported = json.loads(done.stdout)
    data = resident(request.source.settings, torch.device("cpu"))
    with torch.inference_mode():
        expected = trained_network(request)(data.normalise(pixels_of(folder)))
    assert torch.allclose(torch.tensor(scores), expected, atol=1e-5)
    owners = importlib.metadata.packages_distributions()
    foreign = {package for package in imported if package in owners} - {"modeling", "sitecustomize"}
    names = {one.lower().replace("_", "-") for package in foreign for one in owners[package]}
    there_anyway = {"pip", "setuptools", "dill", "nvidia-ml-py"}  # torch imports the last two if it can
    assert names - allowed() - there_anyway <= {"paretovit"}
    assert not {"ray", "optuna", "sqlalchemy", "pydantic", "plotly", "typer", "onnxruntime"} & set(imported)


def test_the_weights_are_those_that_were_validated(trained: Trained, exported: Exported) -> None:
    """The exported network scores on the validation split what the training reported."""
    from workers.bundle import modeling

    folder, request = exported("vit", onnx=True), trained("vit")
    stored = load_file(Path(request.artifacts, request.checkpoint.path))
    weights = load_file(folder / "model.safetensors")
    assert all(torch.equal(weights[name], stored[f"ema/{name}"]) for name in weights)
    assert any(not torch.equal(weights[name], stored[f"model/{name}"]) for name in weights)
    data = resident(request.source.settings, torch.device("cpu"))
    again, _ = evaluate(modeling.load(folder), data, "val", 1, 64)
    before, _ = evaluate(trained_network(request), data, "val", 1, 64)
    assert again == before


def test_without_averaged_weights_the_plain_ones_are_exported(trained: Trained, tmp_path: Path) -> None:
    request = trained("vit", ema_decay=0.0)
    folder = run(request, tmp_path / "model").folder
    stored = load_file(Path(request.artifacts, request.checkpoint.path))
    weights = load_file(folder / "model.safetensors")
    assert all(torch.equal(weights[name], stored[f"model/{name}"]) for name in weights)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check in a process of its own, which takes seconds and has tests of its own."""
    from workers.bundle import export as module

    found = verify.Verified("", (), {}, 0.0, 0, {}, {}, ())
    monkeypatch.setattr(module, "verify", lambda folder: found if manifest.check(folder) else None)


def run(request: Request, target: Path, **facts: Any) -> Any:
    return export(request, target, lambda contents: f"# {contents.sample.words}\n", facts)


@pytest.mark.usefixtures("unchecked")
def test_a_folder_holds_what_is_promised_and_only_that(trained: Trained, tmp_path: Path) -> None:
    request = trained("hybrid")
    run(request, tmp_path / "model", search="flowers")
    folder = tmp_path / "model"
    assert {path.name for path in folder.iterdir()} == manifest.REQUIRED | {manifest.NAME}
    assert ArchSpec.from_dict(json.loads((folder / "spec.json").read_text())) == request.spec
    settings = json.loads((folder / "preprocessing.json").read_text())
    assert settings["class_names"] == [str(digit) for digit in range(10)]
    assert (settings["image_size"], settings["pixels_size"], settings["channels"]) == (8, 8, 1)
    assert (folder / "README.md").read_text() == "# 32 validation images\n"
    facts = json.loads((folder / "manifest.json").read_text())
    assert (facts["search"], facts["torch"], facts["timm"]) == (
        "flowers",
        torch.__version__,
        timm.__version__,
    )


@pytest.mark.usefixtures("unchecked")
def test_the_name_of_pretrained_weights_and_what_became_of_them_is_kept(
    trained: Trained, tmp_path: Path
) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file

    request = trained("vit")
    spec = dataclasses.replace(request.spec, weights="vit_tiny.mine")
    path = Path(request.artifacts, request.checkpoint.path)
    with safe_open(path, "pt") as stored:
        metadata = dict(stored.metadata())
    loaded = {"name": "vit_tiny.mine", "sha256": "ab", "file": "/home/me/secret.safetensors"}
    metadata |= {"spec": spec.digest, "weights": json.dumps(loaded)}
    save_file(load_file(path), tmp_path / "w.safetensors", metadata)
    ref = dataclasses.replace(
        request.checkpoint,
        path="w.safetensors",
        sha256=manifest._entry(tmp_path / "w.safetensors")["sha256"],
    )
    pretrained = dataclasses.replace(request, spec=spec, artifacts=str(tmp_path), checkpoint=ref)
    run(pretrained, tmp_path / "model")
    assert json.loads((tmp_path / "model" / "spec.json").read_text())["weights"] == "vit_tiny.mine"
    kept = json.loads((tmp_path / "model" / "manifest.json").read_text())["weights"]
    assert kept == {"name": "vit_tiny.mine", "sha256": "ab"}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["rotary", "relative", "swin", "hybrid", "backbone", "resnet"])
def test_onnx_answers_as_eager_torch_for_any_number_of_images(
    trained: Trained, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    import onnxruntime

    request = dataclasses.replace(trained(name), onnx=True)
    folder = run(request, tmp_path / "model").folder
    assert capfd.readouterr() == ("", "")  # torch's exporter has a lot to say
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    data = resident(request.source.settings, torch.device("cpu"))
    images = data.normalise(pixels_of(folder))
    with torch.inference_mode():
        expected = trained_network(request)(images)
    for size in (1, 3, 32):
        (scores,) = session.run([onnx_runtime.OUTPUT], {onnx_runtime.INPUT: images[:size].numpy()})
        assert torch.allclose(torch.from_numpy(scores), expected[:size], atol=1e-5)


def test_a_network_that_takes_another_size_than_the_images_have_is_fed_as_in_training(
    trained: Trained, tmp_path: Path
) -> None:
    found = run(trained("resized"), tmp_path / "model")
    assert found.contents.preprocessing["pixels_size"] == 8
    assert found.contents.preprocessing["image_size"] == 12
    assert found.verified.differences["modeling.py"] < 1e-6
    assert found.verified.folder == str(tmp_path / "model")


def a_checkpoint_that_is_gone(request: Request, folder: Path) -> Request:
    return dataclasses.replace(request, artifacts=str(folder / "nowhere"))


def a_damaged_checkpoint(request: Request, folder: Path) -> Request:
    path = folder / "artifacts" / request.checkpoint.path
    path.parent.mkdir(parents=True)
    content = bytearray(Path(request.artifacts, request.checkpoint.path).read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return dataclasses.replace(request, artifacts=str(folder / "artifacts"))


def another_architecture(request: Request, folder: Path) -> Request:
    return dataclasses.replace(request, spec=ArchSpec("resnet10t", {"in_chans": 1, "num_classes": 10}, 8))


def another_name_for_it(request: Request, folder: Path) -> Request:
    return dataclasses.replace(request, spec=dataclasses.replace(request.spec, image_size=16))


def a_model_of_nobody(request: Request, folder: Path) -> Request:
    return dataclasses.replace(request, spec=ArchSpec("no_such_model", {}, 8))


def arguments_that_do_not_fit(request: Request, folder: Path) -> Request:
    return dataclasses.replace(
        request, spec=ArchSpec(request.spec.model, {"img_size": 9, "patch_size": 2}, 8)
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (a_checkpoint_that_is_gone, "the checkpoint is missing"),
        (a_damaged_checkpoint, "has changed since it was written"),
        (another_architecture, "the weights do not fit the network"),
        (another_name_for_it, "is a checkpoint of another architecture"),
        (a_model_of_nobody, "model 'no_such_model' is neither timm's nor paretovit's"),
        (arguments_that_do_not_fit, "the weights do not fit the network"),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(
    trained: Trained, tmp_path: Path, harm: Callable[[Request, Path], Request], said: str
) -> None:
    request = harm(trained("vit"), tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ExportError) as found:
        run(request, tmp_path / "new" / "model")
    assert said in str(found.value)
    assert len(str(found.value).splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("unchecked")
def test_a_network_of_a_plugin_cannot_be_brought_along(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mine(**_arguments: Any) -> nn.Module:
        return nn.Linear(1, 1)

    monkeypatch.setitem(timm.models._registry._model_entrypoints, "mine", mine)
    request = dataclasses.replace(trained("vit"), spec=ArchSpec("mine", {}, 8))
    with pytest.raises(ExportError, match="model 'mine' is neither timm's nor paretovit's"):
        run(request, tmp_path / "model")
    behind = dict(trained("backbone").spec.args) | {"backbone": "mine"}
    request = dataclasses.replace(trained("backbone"), spec=ArchSpec("paretovit_backbone_vit", behind, 8))
    with pytest.raises(ExportError, match="model 'mine' is neither timm's nor paretovit's"):
        run(request, tmp_path / "model")


def test_without_the_extra_its_name_is_told_before_anything_is_done(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_runtime, "PACKAGES", ("onnx", "no_such_package"))
    request = a_checkpoint_that_is_gone(dataclasses.replace(trained("vit"), onnx=True), tmp_path)
    with pytest.raises(ExportError, match=r"needs no_such_package, .* pip install 'paretovit\[export\]'"):
        run(request, tmp_path / "model")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("where", ["manifest", "write", "onnx", "verify"])
def test_whatever_fails_nothing_is_left_behind(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    from workers.bundle import export as module

    def fail(*_arguments: Any, **_options: Any) -> Any:
        raise ExportError(f"{tmp_path / 'seen'}: {where} failed")

    request = dataclasses.replace(trained("vit"), onnx=where == "onnx")
    targets = {
        "manifest": (manifest, "write"),
        "write": (module, "save_file"),
        "onnx": (onnx_runtime, "convert"),
        "verify": (module, "verify"),
    }
    monkeypatch.setattr(*targets[where], fail)
    with pytest.raises(ExportError, match=f"{where} failed"):
        run(request, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_scores_that_do_not_come_back_stop_the_export_and_name_the_target(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_rerun", lambda *_: {"differences": {"modeling.py": 0.5}, "largest": 1.0})
    with pytest.raises(ExportError, match=f"^{tmp_path / 'model'}: modeling.py gives other scores") as found:
        run(trained("vit"), tmp_path / "model")
    assert PARTIAL not in str(found.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unchecked")
def test_a_network_that_gives_no_numbers_is_not_exported(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.full((len(images), 10), float("nan"))

    from workers.bundle import export as module

    monkeypatch.setattr(module, "_trained", lambda request: (Broken(), {"mean": "[0]", "scale": "[1]"}))
    with pytest.raises(ExportError, match="NaN or infinite"):
        run(trained("vit"), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
