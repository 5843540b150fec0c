from __future__ import annotations

import hashlib
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed
from torch import Tensor, nn

import spaces.models
from spaces.spec import ArchSpec
from workers.errors import CandidateError, WeightsError
from workers.pretrained import Loaded, check, load

VIT = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 16,
    "depth": 4,
    "num_heads": 2,
    "in_chans": 3,
    "num_classes": 7,
}
State = dict[str, Tensor]


def vit(weights: str = "mine", model: str = "vit_tiny_patch16_224", **changes: Any) -> ArchSpec:
    args = VIT | changes
    return ArchSpec(model, args, args["img_size"], weights=weights)


def state_of(spec: ArchSpec, seed: int = 1) -> State:
    """Weights of the network of `spec`, none of them as a fresh one has them."""
    torch.manual_seed(seed)
    tensors = spaces.models.build(spec).state_dict()
    return {
        name: torch.randn_like(tensor) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }


def file_of(state: State, folder: Path, name: str = "mine") -> Path:
    path = folder / f"{name}.safetensors"
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, path)
    return path


def loaded(spec: ArchSpec, path: Path) -> tuple[State, Loaded, State]:
    """The network's tensors, what is said of them, and those that it had before."""
    torch.manual_seed(2)
    network = spaces.models.build(spec)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    found = load(network, spec, path)
    return dict(network.state_dict()), found, before


def checked(spec: ArchSpec, path: Path) -> None:
    check([spec], path)


def test_weights_of_the_same_network_and_classes_are_taken_whole(tmp_path: Path) -> None:
    name = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"
    spec = vit(weights=name, num_classes=1000)
    state = state_of(spec)
    path = file_of(state, tmp_path, name)
    tensors, found, _ = loaded(spec, path)
    assert tensors.keys() == state.keys()
    assert all(torch.equal(tensors[name], state[name]) for name in state)
    assert found == Loaded(
        name=name,
        file=str(path),
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        data="augreg_in21k_ft_in1k",
        image_size=224,
        num_tensors=len(state),
        resampled=(),
        fresh=(),
        left_out=(),
        blocks={},
    )


def test_a_classifier_of_other_classes_begins_with_zeros_and_nothing_else_does(tmp_path: Path) -> None:
    state = state_of(vit(num_classes=1000))
    tensors, found, before = loaded(vit(), file_of(state, tmp_path))
    assert found.fresh == ("head.weight", "head.bias")
    assert {name for name in tensors if not tensors[name].any()} == set(found.fresh)
    assert not any(torch.equal(tensors[name], before[name]) for name in tensors if name != "head.bias")
    assert found.num_tensors == len(tensors) - 2


def test_as_many_classes_of_a_file_that_timm_does_not_know_may_be_others(tmp_path: Path) -> None:
    found = loaded(vit(), file_of(state_of(vit()), tmp_path))[1]
    assert found.fresh == ("head.weight", "head.bias")
    assert (found.data, found.image_size) == (None, None)


def test_weights_without_a_classifier_leave_a_fresh_one(tmp_path: Path) -> None:
    state = {name: tensor for name, tensor in state_of(vit()).items() if not name.startswith("head")}
    assert loaded(vit(), file_of(state, tmp_path))[1].fresh == ("head.weight", "head.bias")


def test_position_embeddings_and_patch_kernels_are_resampled_as_timm_does(tmp_path: Path) -> None:
    state = state_of(vit())
    path = file_of(state, tmp_path)
    check([vit(img_size=48), vit(patch_size=4), vit(depth=2), vit()], path)
    larger, found, _ = loaded(vit(img_size=48), path)
    expected = resample_abs_pos_embed(state["pos_embed"], [6, 6], old_size=[4, 4], num_prefix_tokens=1)
    assert torch.equal(larger["pos_embed"], expected)
    assert found.resampled == ("pos_embed",)
    tensors, found, _ = loaded(vit(patch_size=4), path)
    assert found.resampled == ("pos_embed", "patch_embed.proj.weight")
    assert tensors["patch_embed.proj.weight"].shape == (16, 3, 4, 4)


def test_kernels_of_colours_are_summed_for_grey_images_and_the_other_way_shared_out(tmp_path: Path) -> None:
    state = state_of(vit())
    grey, found, _ = loaded(vit(in_chans=1), file_of(state, tmp_path))
    kernels = state["patch_embed.proj.weight"]
    check([vit(in_chans=1)], tmp_path / "mine.safetensors")
    assert torch.allclose(grey["patch_embed.proj.weight"], kernels.sum(1, keepdim=True), atol=1e-5)
    assert found.resampled == ("patch_embed.proj.weight",)
    state = state_of(vit(in_chans=1))
    colour, _, _ = loaded(vit(), file_of(state, tmp_path))
    assert torch.allclose(
        colour["patch_embed.proj.weight"].sum(1), state["patch_embed.proj.weight"][:, 0], atol=1e-5
    )


def test_a_shallower_network_takes_the_first_blocks(tmp_path: Path) -> None:
    state = state_of(vit())
    tensors, found, _ = loaded(vit(depth=3), file_of(state, tmp_path))
    assert all(
        torch.equal(tensor, state[name]) for name, tensor in tensors.items() if name not in found.fresh
    )
    assert "blocks.3.norm1.weight" in state
    assert "blocks.3.norm1.weight" not in tensors
    assert found.blocks == {"blocks": (3, 4)}


def test_shallower_stages_take_the_first_blocks_of_each(tmp_path: Path) -> None:
    args = {
        "img_size": 32,
        "patch_size": 2,
        "window_size": 4,
        "embed_dim": 8,
        "num_heads": [1, 2],
        "num_classes": 7,
    }
    model = "swin_tiny_patch4_window7_224"
    state = state_of(ArchSpec(model, args | {"depths": [2, 4]}, 32))
    shallow = ArchSpec(model, args | {"depths": [1, 2]}, 32, weights="mine")
    _, found, _ = loaded(shallow, file_of(state, tmp_path))
    assert found.blocks == {"layers.0.blocks": (1, 2), "layers.1.blocks": (2, 4)}


@pytest.mark.parametrize(
    "name, size",
    [("resnet10t", 64), ("convnext_atto", 64), ("levit_128s", 64), ("deit_tiny_distilled_patch16_224", 64)],
)
def test_networks_of_other_families_load_by_their_own_rules(name: str, size: int, tmp_path: Path) -> None:
    torch.manual_seed(1)
    depth = {"depth": 1} if "patch16" in name else {}
    state = timm.create_model(name, **depth).state_dict()
    sized = {"img_size": size, **depth} if depth else {}
    spec = ArchSpec(name, {"in_chans": 1, "num_classes": 5, **sized}, size, weights="mine")
    check([spec], file_of(state, tmp_path))
    tensors, found, _ = loaded(spec, file_of(state, tmp_path))
    assert {tensors[fresh].shape[0] for fresh in found.fresh} == {5}
    assert not any(tensors[fresh].any() for fresh in found.fresh)
    kept = tensors.keys() - set(found.fresh) - set(found.resampled)
    assert all(torch.equal(tensors[key], state[key]) for key in kept)


def test_an_older_layout_is_converted(tmp_path: Path) -> None:
    """Layer scales of DeiT III are gamma_1 and gamma_2 in the files that its authors published."""
    spec = ArchSpec(
        "deit3_small_patch16_224", {"img_size": 32, "depth": 1, "num_classes": 5}, 32, weights="mine"
    )
    state = state_of(spec)
    old = {
        name.replace("ls1.gamma", "gamma_1").replace("ls2.gamma", "gamma_2"): value
        for name, value in state.items()
    }
    assert "blocks.0.gamma_1" in old
    tensors, _, _ = loaded(spec, file_of(old, tmp_path))
    assert torch.equal(tensors["blocks.0.ls1.gamma"], state["blocks.0.ls1.gamma"])


def test_a_check_of_several_networks_names_the_one_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match="not fit deit3_small_patch16_224"):
        check([vit(depth=2), vit(), vit(model="deit3_small_patch16_224")], file_of(state_of(vit()), tmp_path))


def test_a_check_is_silent_where_positions_are_resampled(tmp_path: Path, recwarn: Any) -> None:
    args = {"in_chans": 3, "num_classes": 5}
    swin = "swin_tiny_patch4_window7_224"
    path = file_of(
        state_of(ArchSpec(swin, args | {"depths": [1, 1], "num_heads": [1, 1], "embed_dim": 8})), tmp_path
    )
    args |= {"depths": [1, 1], "num_heads": [1, 1], "embed_dim": 8, "img_size": 48, "window_size": 6}
    check([ArchSpec(swin, args, 48, weights="mine")], path)
    assert list(recwarn) == []


def test_batch_norms_counters_may_be_missing(tmp_path: Path) -> None:
    spec = ArchSpec("resnet10t", {"in_chans": 3, "num_classes": 5}, 32, weights="mine")
    state = {
        name: value for name, value in state_of(spec).items() if not name.endswith("num_batches_tracked")
    }
    assert loaded(spec, file_of(state, tmp_path))[1].fresh == ("fc.weight", "fc.bias")


@pytest.mark.parametrize(
    "spec, message",
    [
        (vit(embed_dim=32), r"cls_token is \[1, 1, 16\] in the file, and \[1, 1, 32\] in the network"),
        (vit(depth=5), r"blocks\.4\.norm1\.weight is \[16\] in the network, and the file lacks it"),
        (
            vit(mlp_ratio=2),
            r"blocks\.0\.mlp\.fc1\.weight is \[64, 16\] in the file, and \[32, 16\] in the network",
        ),
        (vit(class_token=False, global_pool="avg"), r"pos_embed|fc_norm\.weight is \[16\] in the network"),
        (vit(model="deit3_small_patch16_224"), r"pos_embed is|ls1\.gamma is \[16\] in the network"),
    ],
)
def test_the_first_tensor_that_does_not_fit_is_named_with_both_shapes(
    spec: ArchSpec, message: str, tmp_path: Path
) -> None:
    path = file_of(state_of(vit()), tmp_path)
    network = spaces.models.build(spec)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    says = rf"^weights mine do not fit {spec.model}: .*({message}).* \({re.escape(str(path))}\)$"
    with pytest.raises(CandidateError, match=says):
        load(network, spec, path)
    with pytest.raises(CandidateError, match=says):
        check([spec], path)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_tensors_that_the_network_lacks_are_named(tmp_path: Path) -> None:
    path = file_of(state_of(vit()) | {"reg_token": torch.zeros(1, 4, 16)}, tmp_path)
    with pytest.raises(
        CandidateError, match=r"reg_token is \[1, 4, 16\] in the file, and the network lacks it"
    ):
        loaded(vit(), path)


def test_what_timm_says_of_its_own_weights_is_kept(tmp_path: Path) -> None:
    name = "vit_tiny_patch16_384.augreg_in21k_ft_in1k"
    spec = vit(weights=name, model="vit_tiny_patch16_384")
    found = loaded(spec, file_of(state_of(spec), tmp_path, name))[1]
    assert (found.data, found.image_size) == ("augreg_in21k_ft_in1k", 384)
    assert found.to_dict()["data"] == "augreg_in21k_ft_in1k"
    assert "blocks" not in found.to_dict()


def test_other_files_are_read_as_numbers_alone(tmp_path: Path) -> None:
    state = state_of(vit())
    path = tmp_path / "mine.pth"
    torch.save({"state_dict": state, "epoch": 3}, path)
    tensors, found, _ = loaded(vit(), path)
    assert all(torch.equal(tensors[name], state[name]) for name in state.keys() - set(found.fresh))


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin", ".safetensors"])
def test_a_file_never_makes_the_program_run_code(tmp_path: Path, suffix: str) -> None:
    trace, path = tmp_path / "trace", tmp_path / f"mine{suffix}"
    torch.save({"head.weight": Evil(trace)}, path)
    for begin in (loaded, checked):
        with pytest.raises(CandidateError, match=r"mine\.\w+: no weights that can be read"):
            begin(vit(), path)
    path.write_bytes(pickle.dumps(Evil(trace), protocol=2))
    for begin in (loaded, checked):
        with pytest.raises(CandidateError, match="no weights that can be read"):
            begin(vit(), path)
    assert not trace.exists()


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"garbage" * 40, b"\xff" * 64])
def test_a_broken_file_is_named(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"mine{suffix}"
    path.write_bytes(content)
    for begin in (loaded, checked):
        with pytest.raises(CandidateError, match=r"mine\.\w+: no weights that can be read"):
            begin(vit(), path)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_file_that_was_cut_off_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"mine{suffix}"
    if suffix == ".pth":
        torch.save(state_of(vit()), path)
    else:
        file_of(state_of(vit()), tmp_path)
    path.write_bytes(path.read_bytes()[:-1000])
    for begin in (loaded, checked):
        with pytest.raises(CandidateError, match=r"mine\.\w+: no weights that can be read"):
            begin(vit(), path)


def test_a_file_that_is_gone_or_not_to_be_opened_is_this_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"gone\.safetensors: weights that cannot be opened: No such file"):
        loaded(vit(), tmp_path / "gone.safetensors")
    (tmp_path / "folder.pth").mkdir()
    with pytest.raises(WeightsError, match=r"folder\.pth: weights that cannot be opened: Is a directory"):
        loaded(vit(), tmp_path / "folder.pth")


def test_a_file_with_something_that_is_no_tensor_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "mine.pth"
    torch.save(state_of(vit()) | {"note": "hello"}, path)
    with pytest.raises(CandidateError, match="note is no tensor but str in the file"):
        loaded(vit(), path)
    torch.save([1, 2], path)
    with pytest.raises(CandidateError, match="no weights that can be read"):
        loaded(vit(), path)


def test_loading_leaves_timm_as_it_was(tmp_path: Path) -> None:
    from timm.models import _builder, load_pretrained

    loaded(vit(), file_of(state_of(vit()), tmp_path))
    assert _builder.load_pretrained is load_pretrained
    assert isinstance(spaces.models.build(vit()), nn.Module)
