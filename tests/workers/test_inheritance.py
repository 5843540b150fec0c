"""A network that begins from parts of a larger pretrained one."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import spaces.models
from spaces.registry import make_space
from spaces.space import FAMILY
from spaces.spec import ArchSpec, Task
from workers import inheritance
from workers.errors import CandidateError, CheckpointError
from workers.inheritance import FAMILIES, Inherited, inherit
from workers.job import Decision, Job
from workers.train import TrainResult, train

MakeJob = Callable[..., Job]
TASK = Task(image_size=28, channels=1, num_classes=5)


def vit(model: str = "vit_tiny_patch16_224", side: int = 28, **changes: Any) -> ArchSpec:
    sizes = {"embed_dim": 24, "depth": 3, "num_heads": 3, "mlp_ratio": 2.0}
    task = {"img_size": side, "patch_size": 7, "in_chans": 1, "num_classes": 5}
    return ArchSpec(model, {**sizes, **task, **changes}, side)


LARGE = vit(side=32, patch_size=8, in_chans=3, num_classes=7)
SOURCES = {
    "plain": LARGE,
    "distilled": vit("deit_tiny_distilled_patch16_224", side=32, patch_size=8, in_chans=3),
    "windowed": ArchSpec(
        "swin_tiny_patch4_window7_224",
        {
            "img_size": 56,
            "window_size": 7,
            "embed_dim": 24,
            "depths": [2, 2, 2],
            "num_heads": [2, 4, 8],
            "in_chans": 3,
            "num_classes": 7,
        },
        56,
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of the sources, no value of which is that of fresh weights, and which networks they are."""
    found = tmp_path_factory.mktemp("weights")
    for name, spec in SOURCES.items():
        torch.manual_seed(1)
        network = spaces.models.build(spec)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_()
        save_file(network.state_dict(), found / f"{name}.safetensors")
        (found / f"{name}.json").write_text(json.dumps(spec.to_dict()))
    return found


def begun(
    spec: ArchSpec, folder: Path, name: str = "plain"
) -> tuple[nn.Module, dict[str, Tensor], Inherited]:
    """The network, its weights as they were drawn, and what it inherited."""
    torch.manual_seed(0)
    network = spaces.models.build(spec)
    drawn = {key: value.clone() for key, value in network.state_dict().items()}
    return network, drawn, inherit(network, spec, name, folder / f"{name}.safetensors")


def test_the_same_network_inherits_everything_but_the_classifier(folder: Path) -> None:
    network, _, told = begun(dataclasses.replace(LARGE), folder)
    weights = load_file(folder / "plain.safetensors")
    for name, value in network.state_dict().items():
        assert torch.equal(value, torch.zeros_like(value) if name.startswith("head.") else weights[name])
    assert told.fresh == ("head.weight", "head.bias")
    assert (told.sliced, told.widened, told.resampled) == ((), (), ())
    assert told.num_whole == len(weights) - 2


def test_a_narrower_one_takes_whole_heads_scaled_for_fewer_inputs(folder: Path) -> None:
    spec = vit(side=32, patch_size=8, in_chans=3, embed_dim=16, num_heads=2, depth=2)
    network, _, told = begun(spec, folder)
    weights, found = load_file(folder / "plain.safetensors"), network.state_dict()
    rows = torch.tensor([*range(16), *range(24, 40), *range(48, 64)])
    name = "blocks.1.attn.qkv.weight"
    assert torch.allclose(found[name], weights[name][rows][:, :16] * (24 / 16) ** 0.5)
    assert torch.equal(found["blocks.1.attn.qkv.bias"], weights["blocks.1.attn.qkv.bias"][rows])
    assert torch.equal(found["pos_embed"], weights["pos_embed"][:, :, :16])
    assert name in told.sliced
    head = sum(value.numel() for key, value in found.items() if key.startswith("head."))
    assert told.share == pytest.approx(1 - head / sum(value.numel() for value in found.values()))


def test_what_is_wider_or_deeper_keeps_its_fresh_weights_there(folder: Path) -> None:
    spec = vit(side=32, patch_size=8, in_chans=3, embed_dim=32, num_heads=4, depth=4)
    network, drawn, told = begun(spec, folder)
    weights, found, name = (
        load_file(folder / "plain.safetensors"),
        network.state_dict(),
        "blocks.0.mlp.fc2.weight",
    )
    assert torch.equal(found[name][:24, :48], weights[name])
    assert torch.equal(found[name][24:], drawn[name][24:])
    assert torch.equal(found[name][:, 48:], drawn[name][:, 48:])
    assert torch.equal(found["blocks.3.mlp.fc1.weight"], drawn["blocks.3.mlp.fc1.weight"])
    assert name in told.widened
    assert "blocks.3.mlp.fc1.weight" in told.fresh


@pytest.mark.parametrize(
    "family, name",
    [
        ("vit", "plain"),
        ("vit", "distilled"),
        ("deit", "plain"),
        ("deit", "distilled"),
        ("hybrid", "plain"),
        ("swin", "windowed"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # timm's interpolation of Swin's tables
def test_every_point_of_a_family_inherits_and_gives_no_class_yet(
    family: str, name: str, folder: Path
) -> None:
    more = {"positions": ["learned", "none", "sincos", "relative", "rotary"], "registers": [0, 2]}
    space = make_space(TASK, "tiny", [family], {"vit": more} if family == "vit" else {})
    rng = random.Random(0)
    for _ in range(6):
        spec = space.spec(space.sample(rng))
        network, _, told = begun(spec, folder, name)
        scores = network.eval()(torch.randn(2, 1, 28, 28))
        assert scores.shape == (2, 5)
        assert not scores.any()
        assert not [name for name in told.fresh if name.endswith("blocks.0.attn.qkv.weight")]
        inheritance.check([spec], name, folder / f"{name}.safetensors")


def test_positions_that_are_computed_are_left_as_they_are(folder: Path) -> None:
    network, drawn, _ = begun(vit("paretovit_sincos_vit"), folder)
    assert torch.equal(network.state_dict()["pos_embed"], drawn["pos_embed"])


def test_patches_positions_and_channels_are_brought_to_those_of_the_network(folder: Path) -> None:
    network, _, told = begun(vit(patch_size=4), folder)
    weights = load_file(folder / "plain.safetensors")
    assert told.resampled == ("pos_embed", "patch_embed.proj.weight")
    assert torch.equal(network.state_dict()["pos_embed"][:, :1], weights["pos_embed"][:, :1])
    assert "patch_embed.proj.weight" not in told.fresh


def test_all_families_that_can_inherit_are_families_of_ours() -> None:
    for family in FAMILIES:
        assert make_space(TASK, "tiny", [family]).sample(random.Random(0))[FAMILY] == family


def refusal(spec: ArchSpec, name: str, path: Path | None) -> str:
    with pytest.raises(CandidateError) as caught:
        inheritance.check([spec], name, path)
    return str(caught.value)


def test_weights_of_another_kind_of_network_are_refused(folder: Path) -> None:
    assert "cannot inherit from a SwinTransformer" in refusal(
        vit(), "windowed", folder / "windowed.safetensors"
    )
    assert "cannot inherit from a ResNet; only from a plain" in refusal(vit(), "resnet18.a1_in1k", None)
    assert "a network with a stem" in refusal(vit(), "vit_tiny_r_s16_p8_224.augreg_in21k", None)


def test_a_source_that_nobody_knows_is_refused_naming_the_file_that_would_say(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "mine.safetensors")
    text = refusal(vit(), "mine", tmp_path / "mine.safetensors")
    assert "'mine' is no network of timm" in text
    assert "mine.json" in text
    (tmp_path / "mine.json").write_text("[]")
    assert "mine.json: does not describe a network" in refusal(vit(), "mine", tmp_path / "mine.safetensors")


def test_a_file_that_is_not_what_its_description_says_is_refused_naming_a_tensor(tmp_path: Path) -> None:
    save_file({"cls_token": torch.zeros(1, 1, 24)}, tmp_path / "mine.safetensors")
    (tmp_path / "mine.json").write_text(json.dumps(LARGE.to_dict()))
    text = refusal(vit(), "mine", tmp_path / "mine.safetensors")
    assert "the file lacks it" in text
    assert str(tmp_path / "mine.safetensors") in text


def run(job: Job) -> TrainResult:
    return train(job, torch.device("cpu"), lambda _: Decision.CONTINUE, lambda: 0.0)


@pytest.fixture
def inheriting(train_job: MakeJob, tmp_path: Path) -> MakeJob:
    """`train_job` that inherits from a larger ViT, a copy of whose file it may lose."""
    torch.manual_seed(0)
    source = vit(side=8, patch_size=2, num_classes=3)
    save_file(spaces.models.build(source).state_dict(), tmp_path / "larger.safetensors")
    (tmp_path / "larger.json").write_text(json.dumps(source.to_dict()))

    def make(first: int, last: int, **changes: Any) -> Job:
        return train_job(first, last, **{"inherit": "larger", "weights_dir": str(tmp_path)} | changes)

    return make


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("settings", [{}, {"frozen_epochs": 1.5}])
def test_stopping_and_resuming_ends_in_the_same_bits_without_the_file(
    inheriting: MakeJob, tmp_path: Path, settings: dict[str, Any]
) -> None:
    whole = run(inheriting(1, 4, **settings))
    first = run(inheriting(1, 1, id=8, **settings))
    (tmp_path / "larger.safetensors").unlink()
    second = run(inheriting(2, 2, id=9, checkpoint=first.checkpoint, **settings))
    third = run(inheriting(3, 4, id=10, checkpoint=second.checkpoint, **settings))
    artifacts = Path(inheriting(1, 1).artifacts)
    expected, found = (load_file(artifacts / one.checkpoint.path) for one in (whole, third))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert whole.evaluation == third.evaluation
    assert whole.notes["weights"] == first.notes["weights"] == third.notes["weights"]


@pytest.mark.usefixtures("one_thread")
def test_a_checkpoint_that_began_otherwise_is_not_taken_up(inheriting: MakeJob, train_job: MakeJob) -> None:
    first, fresh = run(inheriting(1, 1)), run(train_job(1, 1, id=8))
    with pytest.raises(CheckpointError, match="inherits is larger, but the job has None"):
        run(train_job(2, 2, id=9, checkpoint=first.checkpoint))
    with pytest.raises(CheckpointError, match="inherits is None, but the job has larger"):
        run(inheriting(2, 2, id=9, checkpoint=fresh.checkpoint))


def test_what_was_inherited_is_noted_as_plain_values(inheriting: MakeJob) -> None:
    noted = run(inheriting(1, 1)).notes["weights"]
    assert json.loads(json.dumps(noted)) == noted
    assert (noted["name"], noted["fresh"]) == ("larger", ["head.weight", "head.bias"])
    assert len(noted["sha256"]) == 64
    assert 0.5 < noted["share"] < 1
