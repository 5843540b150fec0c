from __future__ import annotations

import functools
import json

import pytest

from search.cli.main import main
from workers.settings import CostSettings


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PARETOVIT_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.chdir(tmp_path)
    shorter = functools.partialmethod(CostSettings.__init__, max_seconds=0.1)
    monkeypatch.setattr(CostSettings, "__init__", shorter)


SMALL = ["--image-size", "32", "--classes", "10", "--channels", "1"]


def test_timm_models_are_measured_at_each_batch_in_the_documented_form(capsys, tmp_path):
    models = ["--timm", "mobilenetv3_small_050", "vit_tiny_patch16_224"]
    assert main(["measure", *models, *SMALL, "--batch", "1", "--batch", "2", "--again", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"device", "protocol", "results"}
    assert set(found["device"]) == {"id", "name", "threads"}
    assert found["protocol"] == "host-2"
    asked = [(result["model"], result["batch_size"]) for result in found["results"]]
    assert asked == [
        ("mobilenetv3_small_050", 1),
        ("mobilenetv3_small_050", 2),
        ("vit_tiny_patch16_224", 1),
        ("vit_tiny_patch16_224", 2),
    ]
    for result in found["results"]:
        assert (result["runtime"], result["precision"]) == ("torch", "fp32")
        assert {"median", "p95", "p99", "n", "relative_error"} <= set(result["latency_ms"])
        assert result["latency_ms"]["median"] > 0
        assert result["throughput"] > 0
        assert result["peak_memory_mb"] >= result["model_mb"] > 0
        assert result["flags"] in ([], ["contended"])
    small, large = found["results"][0], found["results"][2]
    assert large["params"] > small["params"] * 3
    assert {path.name for path in tmp_path.iterdir()} == {"runtime"}, "nothing is stored"


def test_the_table_names_device_protocol_and_model(capsys):
    assert main(["measure", "--timm", "mobilenetv3_small_050", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "protocol host-2" in out
    assert "1 thread)" in out
    assert "mobilenetv3_small_050" in out.splitlines()[2]


def test_a_model_that_fails_is_named_with_its_reason_and_the_others_are_shown(capsys):
    """8 px are too few for the strides of this one."""
    code = main(
        ["measure", "--timm", "edgenext_xx_small", "mobilenetv3_small_050", "--image-size", "8", "--json"]
    )
    shown = capsys.readouterr()
    assert code == 1
    assert [result["model"] for result in json.loads(shown.out)["results"]] == ["mobilenetv3_small_050"]
    assert "measure: edgenext_xx_small, batch 1: " in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "--timm vit_tiny_patch16_224"),
        (
            ["--timm", "resnet18", "--runtime", "tensorflow"],
            "--runtime: 'tensorflow' is none of torch, torch-compile",
        ),
        (
            ["--timm", "resnet18", "--precision", "fp8"],
            "--precision: 'fp8' is none of auto, fp32, bf16, fp16, int8",
        ),
        (["--timm", "resnet18", "--cache", "warm"], "--cache: 'warm' is none of hot, cold"),
        (
            ["--timm", "resnet18", "--device", "cpu", "--precision", "int8"],
            "torch offers fp32, bf16, fp16 on a CPU",
        ),
        (
            ["--timm", "resnet18", "--device", "cpu", "--runtime", "cuda-graph"],
            "cuda-graph does not measure on a CPU",
        ),
        (["--timm", "resnett18"], "near: resnet18"),
        (["--timm", "resnet18", "--device", "cuda:9"], "'cuda:9' is not here; there is cpu"),
        (["--timm", "resnet18", "--device", "tpu"], "none of auto, cpu, cuda, cuda:N"),
        (["--timm", "resnet18", "--batch", "0"], "batch_size: 0 is outside"),
        (["--timm", "resnet18", "--threads", "0"], "threads: 0 is outside"),
        (["--timm", "resnet18", "--image-size", "0"], "--image-size"),
        (["--timm", "resnet18", "--classes", "-1"], "--classes"),
    ],
)
def test_mistakes_are_told_in_one_or_two_lines(capsys, arguments, message):
    assert main(["measure", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) <= 2


def test_runtime_precision_and_cache_are_those_asked_for_and_named(capsys):
    model = ["--timm", "vit_tiny_patch16_224", *SMALL]
    assert main(["measure", *model, "--precision", "bf16", "--cache", "cold", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert (found["runtime"], found["precision"], found["cache"]) == ("torch", "bf16", "cold")
    assert found["age_seconds"] is None
    pytest.importorskip("onnxruntime")
    assert main(["measure", *model, "--runtime", "onnxruntime"]) == 0
    assert "; onnxruntime, fp32, hot cache; protocol" in capsys.readouterr().out
