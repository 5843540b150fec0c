import json
import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from search import config
from search.errors import UsageError
from workers.settings import CostSettings, DataSettings, JobSettings, RecipeSettings

SMALLEST = "name: a\ndata: {source: digits}\n"

EVERYTHING = """\
name: flowers-2
data: {source: folder, path: flowers, image_size: 64, val_fraction: 0.2, test_fraction: 0.1, seed: 3}
space:
  preset: small
  families: [vit, swin]
  image_size: [64, 96]
  vit: {patch_size: [8], depth: {low: 2, high: 6, step: 2}}
objectives: [accuracy, latency_ms, params]
constraints: {latency_ms: 1.5x wide, peak_memory_mb: 4000, accuracy: 0.5}
cost: {device: cpu, batch_size: 4, precision: fp32, threads: 2}
training: {recipe: plain, epochs: 9, batch_size: 64, learning_rate: 1e-3}
search: {sampler: tpe, rungs: [3, 9], max_candidates: 20, deadline: 10:30, workers: 2, engine: inline, seed: 1}
limits: {step_seconds: 60}
finalists: {count: 0}
baselines: {wide: {model: resnet18, args: {width: 2}}}
artifacts: out
"""


@pytest.fixture
def write(tmp_path):
    def write_(text: str) -> Path:
        path = tmp_path / "search.yaml"
        path.write_text(text)
        return path

    return write_


def refused(path: Path, *overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        config.load(path, overrides)
    lines = str(caught.value).splitlines()
    assert 1 <= len(lines) <= 2
    return str(caught.value)


def test_name_and_data_are_enough(write):
    loaded = config.load(write(SMALLEST))
    assert loaded.data == DataSettings(source="digits")
    assert loaded.objectives == ("accuracy", "latency_ms")
    assert loaded.baseline_names == ("resnet", "deit_tiny", "resnet18")
    assert loaded.search.max_candidates == "auto"
    assert loaded.cost == CostSettings()


@pytest.mark.parametrize("text", [SMALLEST, EVERYTHING])
def test_a_config_survives_the_database(write, text):
    loaded = config.load(write(text))
    assert config.from_dict(json.loads(json.dumps(loaded.to_dict()))) == loaded


def test_every_setting_arrives(write, tmp_path):
    loaded = config.load(write(EVERYTHING))
    assert loaded.space.families == ("vit", "swin")
    assert loaded.space.ranges == {
        "image_size": [64, 96],
        "vit": {"patch_size": [8], "depth": {"low": 2, "high": 6, "step": 2}},
    }
    assert loaded.constraints == {"latency_ms": "1.5x wide", "peak_memory_mb": 4000, "accuracy": 0.5}
    assert loaded.training.learning_rate == 1e-3
    assert loaded.search.rungs == (3, 9)
    assert loaded.search.deadline == "10:30"
    assert loaded.baseline_names == ("wide",)
    assert loaded.data.path == str(tmp_path / "flowers")
    assert loaded.artifacts == str(tmp_path / "out")


def test_an_empty_section_is_its_defaults(write):
    assert config.load(write(SMALLEST + "training:\nsearch:\n")) == config.load(write(SMALLEST))


def test_no_baselines_is_not_the_default_baseline(write):
    assert config.load(write(SMALLEST + "baselines: {}\n")).baseline_names == ()


def test_a_path_starts_at_the_file_and_an_overriding_one_at_the_working_folder(write, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    path = write("name: a\ndata: {source: folder, path: images}\n")
    assert config.load(path).data.path == str(tmp_path / "images")
    assert config.load(path, ["data.path=images"]).data.path == str(elsewhere / "images")


def test_an_override_beats_the_file(write):
    loaded = config.load(write(EVERYTHING), ["training.epochs=3", "search.rungs=none", "search.deadline="])
    assert (loaded.training.epochs, loaded.search.rungs, loaded.search.deadline) == (3, "none", None)


def test_a_stored_config_takes_overrides_too(write):
    stored = config.load(write(SMALLEST)).to_dict()
    assert config.from_dict(stored, ["search.max_candidates=80"]).search.max_candidates == 80


def test_a_config_cannot_be_changed(write):
    loaded = config.load(write(SMALLEST))
    with pytest.raises(ValidationError):
        loaded.name = "b"
    with pytest.raises(ValidationError):
        loaded.search.seed = 3


def test_a_job_takes_what_a_worker_needs(write):
    loaded = config.load(write(EVERYTHING))
    settings = config.job_settings(loaded)
    assert settings == JobSettings(loaded.data, loaded.training, loaded.cost, loaded.limits)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert isinstance(settings.recipe, RecipeSettings)


def test_a_later_error_names_the_line_too(write):
    loaded = config.load(write(SMALLEST + "search:\n  seed: 0\n  deadline: 8h\n"), ["cost.device=cuda:7"])
    assert str(loaded.error("search.deadline", "is past")).endswith("search.yaml:5: search.deadline: is past")
    assert str(loaded.error("cost.device", "not there")) == "--set cost.device: not there"
    assert str(loaded.error("artifacts", "no")).endswith("search.yaml: artifacts: no")


@pytest.mark.parametrize(
    "line, expected",
    [
        ("training: {epoch: 3}", "search.yaml:3: training.epoch: unknown key; nearest: epochs"),
        ("trainings: {}", "search.yaml:3: trainings: unknown key; nearest: training"),
        ("training: {foo: 3}", "search.yaml:3: training.foo: unknown key; known: recipe, epochs"),
        ("epochs: 3", "epochs: unknown key here; it belongs in training: training.epochs"),
        ("baselines: {r: {modell: x, model: y}}", "baselines.r.modell: unknown key; nearest: model"),
        ("space: {vitt: {depth: [2]}}", "space.vitt: unknown key or family; nearest: vit"),
        ("space: {families: [vti]}", "space.families: unknown 'vti'; nearest: vit"),
        ("space: {families: []}", "space.families: is empty"),
        ("space: {families: [swin], vit: {depth: [2]}}", "space.vit: is not among space.families"),
        ("space: {vit: 3}", "space.vit: needs `key: value` lines, not 3"),
        ("space: {preset: huge}", "space.preset: unknown 'huge'; known: tiny, small, base"),
        ("space: {image_size: [32, 2]}", "space.image_size: 2 is not legal; legal: 4 to 1024"),
        ("space: {image_size: {low: 32}}", "space.image_size: a range needs low and high; high is missing"),
        ("finalists: {count: 5}", "finalists.count: finalists are not built yet; use 0"),
        ("finalists: {seeds: 3}", "finalists.seeds: finalists are not built yet"),
        ("finalists: {evaluate: [corruptions]}", "finalists.evaluate: finalists are not built yet"),
        ("artifacts: s3://bucket", "artifacts: 's3://bucket' is no folder"),
        ("training: {epochs: '27'}", "training.epochs: needs a whole number, not '27'"),
        ("training: {epochs: 2.5}", "training.epochs: needs a whole number, not 2.5"),
        ("training: {epochs: true}", "training.epochs: needs a whole number, not true"),
        ("training: {learning_rate: fast}", "training.learning_rate: needs a number, not 'fast'"),
        ("training: 3", "search.yaml:3: training: needs `key: value` lines, not 3"),
        ("objectives: accuracy", "objectives: needs a list, not 'accuracy'"),
        ("constraints: {latency_ms: true}", "constraints.latency_ms: needs a number, or text"),
        (
            "constraints: {latency_ms: 2x other}",
            "constraints.latency_ms: unknown baseline 'other'; known: resnet",
        ),
        ("constraints: {latency: 3}", "constraints: unknown quantity 'latency'; nearest: latency_ms"),
        ("search: {sampler: anneal}", "search.sampler: 'anneal' is none of auto, random, tpe, nsga2, gp"),
        ("search: {engine: dask}", "search.engine: 'dask' is none of ray, inline"),
        ("search: {workers: 0}", "search.workers: 0 is neither auto nor"),
        ("search: {workers: many}", "search.workers: 'many' is neither auto nor"),
        ("search: {rungs: []}", "search.rungs: [] is none of auto, none"),
        ("search: {rungs: [0, 27]}", "search.rungs: [0, 27] starts below 1"),
        ("search: {rungs: [9, 9, 27]}", "search.rungs: [9, 9, 27] is not increasing"),
        ("search: {rungs: [3, 9]}", "search.rungs: [3, 9] has to end at training.epochs, which is 27"),
        ("search: {deadline: 8}", "search.deadline: needs text, not 8; put it in quotes"),
        ("search: {deadline: whenever}", "search.deadline: 'whenever' is no deadline"),
        ("search: {seed: -1}", "search.seed: -1 is outside 0"),
        ("baselines: {a/b: {model: resnet18}}", "baselines: 'a/b' needs 1 to 80"),
        ("baselines: {r: {args: {}}}", "baselines.r.model: is missing"),
        ("cost: {runtime: onnx}", "cost.runtime: 'onnx' is none of torch"),
        ("limits: {step_seconds: 0}", "limits.step_seconds: 0"),
    ],
)
def test_a_mistake_names_its_key_value_and_remedy(write, line, expected):
    assert expected in refused(write(SMALLEST + line + "\n"))


@pytest.mark.parametrize("name", ["", ".hidden", "-x", "a/b", "a b", "ü", "../x", 81 * "a", "a\\b"])
def test_a_name_that_is_no_file_name_is_refused(write, name):
    assert "name: " in refused(write(f"name: {json.dumps(name)}\ndata: {{source: digits}}\n"))


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "_x", 80 * "a", "0"])
def test_a_plain_name_is_taken(write, name):
    assert config.load(write(f"name: {json.dumps(name)}\ndata: {{source: digits}}\n")).name == name


def test_two_mistakes_are_shown_in_the_order_of_the_file_and_more_are_counted(write):
    text = SMALLEST + "training:\n  epochs: x\n  foo: 1\nzoo: 1\n"
    assert refused(write(text)).splitlines() == [
        f"{write(text)}:4: training.epochs: needs a whole number, not 'x'",
        f"{write(text)}:5: training.foo: unknown key; known: {', '.join(config.sections()['training'])} (and 1 more)",
    ]


def test_an_overriding_mistake_names_the_option(write):
    assert (
        refused(write(SMALLEST), "training.epoch=3") == "--set training.epoch: unknown key; nearest: epochs"
    )


def test_a_missing_section_is_named(write):
    assert refused(write("name: a\n")).endswith("search.yaml: data: is missing, and has no default")


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"data": {"source": "digits", "train_limit": 0}}, "train_limit: 0 is outside 2 to 100000000"),
        ({"data": {"source": "digits", "seed": -1}}, "seed: -1 is outside 0 to 2147483647"),
        ({"training": {"learning_rate": 11}}, "learning_rate: 11.0 is outside 1e-08 to 10"),
        (
            {"training": {"epochs": 9, "warmup_epochs": 10}},
            "warmup_epochs: 10.0 is outside 0 to 9 (training.epochs)",
        ),
    ],
)
def test_a_range_is_told_in_numbers_that_can_be_typed_in(sections, expected):
    with pytest.raises(UsageError) as caught:
        config.from_dict({"name": "s", "data": {"source": "digits"}} | sections)
    assert str(caught.value).endswith(expected)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"source": "npz"}, "data.path: source 'npz' needs the file of its arrays"),
        ({"source": "folder"}, "data.path: source 'folder' needs the folder of its images"),
        ({"source": "webdataset"}, "data.path: source 'webdataset' needs the folder of its tar files"),
        ({"source": "huggingface"}, "data.name: source 'huggingface' needs a name, or the path"),
        (
            {"source": "huggingface", "name": "x", "path": "/y"},
            "data.name: source 'huggingface' takes a name or the path of a saved data set, not both; remove one",
        ),
    ],
)
def test_what_a_source_lacks_is_called_what_it_is(data, expected):
    with pytest.raises(UsageError) as caught:
        config.from_dict({"name": "s", "data": data})
    assert expected in str(caught.value)
