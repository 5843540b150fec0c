"""Every mistake that a user can make with a config or a database: one or two lines, the key, nothing written."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save

from search.cli.main import main
from search.config import load
from search.validate import check

OTHERS = save({"cls_token": np.zeros((1, 1, 16), np.float32)})
HEAD = "name: hunt\ndata: {source: digits}\n"
FOLDER = "name: hunt\ndata: {source: folder, path: images, image_size: 16}\n"
NPZ = "name: hunt\ndata: {source: npz, path: x.npz}\n"
OWN_WEIGHTS = (
    HEAD
    + "training: {weights_dir: weights}\nbaselines: {mine: {model: resnet18, image_size: 32, weights: resnet18.mine}}\n"
)
ALIAS_BOMB = HEAD + "a: &a [x]\n" + "".join(f"b{i}: &b{i} [*a, *a, *a, *a, *a, *a]\n" for i in range(30))


def images(*classes: str, count: int = 12) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        random = np.random.default_rng(0)
        for name in classes:
            (folder / "images" / name).mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 255, (16, 16, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / "images" / name / f"{number}.png")

    return make


def broken_images(folder: Path) -> None:
    """Every header is whole, and nothing behind it is."""
    images("cat", "dog")(folder)
    for path in (folder / "images").rglob("*.png"):
        path.write_bytes(path.read_bytes()[:60])


def cut_images(folder: Path) -> None:
    images("cat", "dog")(folder)
    for path in (folder / "images").rglob("*.png"):
        path.write_bytes(path.read_bytes()[:300])


def a_single_dog(folder: Path) -> None:
    for split, count in (("train", 12), ("val", 3), ("test", 3)):
        images(f"{split}/cat", f"{split}/dog", count=count)(folder)
    for number in range(1, 12):
        (folder / "images" / "train" / "dog" / f"{number}.png").unlink()


def bare_arrays(folder: Path) -> None:
    np.savez(folder / "x.npz", images=np.zeros((20, 8, 8), np.uint8))


def an_empty_class(folder: Path) -> None:
    images("cat", "cow")(folder)
    (folder / "images" / "dog").mkdir()


def empty_folder(folder: Path) -> None:
    (folder / "images").mkdir()


def regular_file(folder: Path) -> None:
    (folder / "file").write_text("not a folder\n")


def weights(name: str, content: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "weights").mkdir()
        (folder / "weights" / name).write_bytes(content)

    return make


def nothing(folder: Path) -> None:
    pass


@dataclass(frozen=True)
class Mistake:
    """text: of search.yaml, None for no file. says: what stderr has to hold, the key first."""

    text: str | None
    says: tuple[str, ...]
    before: Callable[[Path], None] = nothing


MISTAKES = {
    "unknown key at the top": Mistake(
        HEAD + "objektives: []\n", ("search.yaml:3: objektives", "nearest: objectives")
    ),
    "unknown key in a section": Mistake(
        HEAD + "training: {epoch: 3}\n", (":3: training.epoch:", "nearest: epochs")
    ),
    "unknown key deeper": Mistake(
        HEAD + "baselines:\n  r:\n    model: resnet18\n    modell: x\n",
        ("search.yaml:6: baselines.r.modell",),
    ),
    "unknown dimension": Mistake(HEAD + "space: {vit: {dept: [2]}}\n", (":3: space.vit", "dept", "depth")),
    "invalid YAML": Mistake(HEAD + "training: {epochs: 3\n", ("search.yaml:4: is not valid YAML",)),
    "a tab": Mistake(HEAD + "training:\n\tepochs: 3\n", ("search.yaml:4: is not valid YAML",)),
    "a YAML tag": Mistake(
        HEAD + "x: !!python/object/apply:os.system [touch pwned]\n", (":3:", "tag", "os.system")
    ),
    "an alias bomb": Mistake(ALIAS_BOMB, ("search.yaml:3:", "aliases")),
    "a key twice": Mistake(HEAD + "name: other\n", ("search.yaml:3: name:", "twice")),
    "no file": Mistake(None, ("search.yaml: no such file", "paretovit init")),
    "an empty file": Mistake("", ("search.yaml: is empty", "paretovit init")),
    "only a comment": Mistake("# later\n", ("search.yaml: is empty",)),
    "a list": Mistake("- name: hunt\n", ("search.yaml:1:", "key: value")),
    "a binary file": Mistake("\x00\x01", ("search.yaml:1: holds a character",)),
    "no data": Mistake("name: hunt\n", ("data: is missing",)),
    "no name": Mistake("data: {source: digits}\n", ("name: is missing",)),
    "an empty name": Mistake('name: ""\ndata: {source: digits}\n', ("search.yaml:1: name: ''",)),
    "a name with a slash": Mistake("name: a/b\ndata: {source: digits}\n", ("search.yaml:1: name: 'a/b'",)),
    "a name with dots in front": Mistake(
        "name: ../a\ndata: {source: digits}\n", ("search.yaml:1: name: '../a'",)
    ),
    "an unknown source": Mistake(
        "name: hunt\ndata: {source: imagenet}\n", (":2: data.source: 'imagenet'", "folder")
    ),
    "a missing folder": Mistake(FOLDER, ("search.yaml:2: data.path:", "images", "not a folder")),
    "an empty folder": Mistake(FOLDER, ("search.yaml:2: data.path:", "images"), empty_folder),
    "one class": Mistake(FOLDER, ("search.yaml:2: data.path:", "one class"), images("cat")),
    "an empty class": Mistake(FOLDER, ("search.yaml:2: data", "dog"), an_empty_class),
    "too few images of a class": Mistake(
        FOLDER, ("search.yaml:2: data", "cat"), images("cat", "dog", count=2)
    ),
    "a class with one image to learn from": Mistake(
        FOLDER, ("search.yaml:2: data: class 'dog' has 1 image to learn from; add images",), a_single_dog
    ),
    "images that are cut off": Mistake(
        FOLDER,
        ("search.yaml:2: data: ", "cat/0.png: ", "nor can 23 more be used", "data.max_bad: 24"),
        cut_images,
    ),
    "more bad images than are put up with": Mistake(
        FOLDER.replace("16}", "16, max_bad: 20}"),
        ("search.yaml:2: data.max_bad: 20: 24 images cannot be used: ", "cat/0.png", "raise it"),
        cut_images,
    ),
    "a balance of even classes": Mistake(
        FOLDER.replace("16}", "16, balance: loss}"),
        (":2: data.balance: loss: every class has 8 training images already; remove it",),
        images("cat", "dog"),
    ),
    "a negative number of bad images": Mistake(
        FOLDER.replace("16}", "16, max_bad: -1}"),
        (":2: data.max_bad: -1 is outside 0",),
        images("cat", "dog"),
    ),
    "arrays without labels": Mistake(
        NPZ,
        (":2: data.path: ", "x.npz: images and labels of 'all' are not both there", "name arrays"),
        bare_arrays,
    ),
    "arrays that are not there": Mistake(
        NPZ,
        (":2: data.path: ", "x.npz is no file"),
    ),
    "torchvision without a name": Mistake(
        "name: hunt\ndata: {source: torchvision, path: images}\n", (":2: data.name: ", "such as CIFAR10")
    ),
    "a data set that torchvision does not have": Mistake(
        "name: hunt\ndata: {source: torchvision, path: images, name: CIFAR11}\n",
        (":2: data.name: 'CIFAR11' is no data set", "there are: CIFAR10"),
    ),
    "a data set that is not on this machine": Mistake(
        "name: hunt\ndata: {source: torchvision, path: images, name: CIFAR10}\n",
        (":2: data.name: CIFAR10: its files cannot be used", "data.download: true"),
    ),
    "a name and a path of one data set": Mistake(
        "name: hunt\ndata: {source: huggingface, path: images, name: mnist}\n",
        (":2: data.name: ", "not both"),
    ),
    "a saved data set that is not there": Mistake(
        "name: hunt\ndata: {source: huggingface, path: images}\n", (":2: data", "images")
    ),
    "a name for a source that takes none": Mistake(
        FOLDER.replace("16}", "16, name: cats}"),
        (":2: data.name: source 'folder' takes none; only torchvision",),
    ),
    "a download from nowhere": Mistake(
        FOLDER.replace("16}", "16, download: true}"), (":2: data.download: source 'folder' takes none",)
    ),
    "a column of a folder": Mistake(
        FOLDER.replace("16}", "16, label_column: species}"),
        (":2: data.label_column: source 'folder' takes none; only huggingface",),
    ),
    "tar files that are not there": Mistake(
        "name: hunt\ndata: {source: webdataset, path: images}\n",
        (":2: data.path: ", "holds no .tar files; check the path"),
        empty_folder,
    ),
    "idx without its files": Mistake(
        "name: hunt\ndata: {source: idx, path: images}\n",
        ("search.yaml:2: data.path:", "idx3-ubyte"),
        empty_folder,
    ),
    "a folder source without path": Mistake(
        "name: hunt\ndata: {source: folder}\n", (":2: data.path:", "folder")
    ),
    "fractions over one": Mistake(
        "name: hunt\ndata: {source: digits, val_fraction: 0.7, test_fraction: 0.7}\n",
        (":2: data.val_fraction",),
    ),
    "a fraction over one": Mistake(
        "name: hunt\ndata: {source: digits, val_fraction: 1.5}\n", ("data.val_fraction",)
    ),
    "an unknown family": Mistake(
        HEAD + "space: {families: [vit, mamba]}\n", (":3: space.families:", "'mamba'", "swin")
    ),
    "an unknown preset": Mistake(
        HEAD + "space: {preset: huge}\n", (":3: space.preset:", "'huge'", "tiny, small, base")
    ),
    "a patch that does not divide": Mistake(
        HEAD + "space:\n  families: [vit]\n  vit: {patch_size: [3]}\n", (":5: space.vit.patch_size:", "3")
    ),
    "negative epochs": Mistake(HEAD + "training: {epochs: -3}\n", (":3: training.epochs: -3",)),
    "no epochs": Mistake(HEAD + "training: {epochs: 0}\n", (":3: training.epochs: 0",)),
    "NaN": Mistake(HEAD + "training: {learning_rate: .nan}\n", (":3: training.learning_rate: .nan",)),
    "infinity": Mistake(HEAD + "constraints: {latency_ms: .inf}\n", (":3: constraints.latency_ms: .inf",)),
    "NaN as text": Mistake(HEAD + "constraints: {latency_ms: nan}\n", (":3: constraints.latency_ms:", "nan")),
    "unsorted rungs": Mistake(
        HEAD + "search: {rungs: [9, 3, 27]}\n", (":3: search.rungs: [9, 3, 27]", "increasing")
    ),
    "rungs past the epochs": Mistake(
        HEAD + "search: {rungs: [3, 9]}\ntraining: {epochs: 6}\n",
        (":3: search.rungs: [3, 9]", "training.epochs", "6"),
    ),
    "an unknown objective": Mistake(
        HEAD + "objectives: [acuracy]\n", (":3: objectives:", "acuracy", "accuracy")
    ),
    "an objective like no other": Mistake(
        HEAD + "objectives: [foo]\n", (":3: objectives: unknown quantity 'foo'; known: accuracy, latency_ms",)
    ),
    "no objective": Mistake(HEAD + "objectives: []\n", (":3: objectives:", "empty")),
    "an objective twice": Mistake(HEAD + "objectives: [params, params]\n", (":3: objectives:", "'params'")),
    "an unknown constraint": Mistake(HEAD + "constraints: {latency: 5}\n", (":3: constraints", "latency_ms")),
    "a bound on an unknown baseline": Mistake(
        HEAD + "constraints: {latency_ms: 2x vgg}\n", (":3: constraints.latency_ms:", "'vgg'", "resnet")
    ),
    "an unknown timm model": Mistake(
        HEAD + "baselines: {mine: {model: resnet19}}\n", (":3: baselines.mine:", "resnet19")
    ),
    "a timm model of another image size": Mistake(
        HEAD + "baselines: {mine: {model: vit_tiny_patch16_224}}\n",
        (":3: baselines.mine:", "224", "img_size: 8"),
    ),
    "a baseline that gives features instead of scores": Mistake(
        HEAD + "baselines: {mine: {model: resnet18, args: {features_only: true}}}\n",
        (":3: baselines.mine:", "it gives list for an image, not a score a class"),
    ),
    "a baseline with an argument that timm trips over": Mistake(
        HEAD + "baselines: {mine: {model: resnet18, args: {features_only: true, out_indices: [9]}}}\n",
        (":3: baselines.mine:", "does not build"),
    ),
    "a baseline whose patches do not divide the images": Mistake(
        HEAD + "baselines: {mine: {model: vit_tiny_patch16_224, args: {img_size: 40}, image_size: 40}}\n",
        (":3: baselines.mine:", "patches of 16 px do not divide 40 px\n"),
    ),
    "a baseline of other classes": Mistake(
        HEAD + "baselines:\n  mine:\n    model: resnet18\n    args: {num_classes: 3}\n",
        (":6: baselines.mine.args.num_classes: 3: follows from the images (classes: 10); remove it",),
    ),
    "a baseline of other channels": Mistake(
        HEAD + "baselines: {mine: {model: resnet18, args: {in_chans: 3}}}\n",
        (":3: baselines.mine.args.in_chans: 3: follows from the images (channels: 1); remove it",),
    ),
    "a path that the digits do not need": Mistake(
        "name: hunt\ndata: {source: digits, path: images}\n",
        ("search.yaml:2: data.path: source digits brings its own images; remove path",),
        images("cat", "dog"),
    ),
    "a GPU that is not there": Mistake(
        HEAD + "cost: {device: 'cuda:63'}\n", (":3: cost.device:", "cuda:63", "cpu")
    ),
    "no device": Mistake(HEAD + "cost: {device: tpu}\n", (":3: cost.device: 'tpu'", "cuda:N")),
    "no candidates": Mistake(HEAD + "search: {max_candidates: 0}\n", (":3: search.max_candidates: 0",)),
    "a past deadline": Mistake(
        HEAD + "search: {deadline: 2001-01-01}\n", (":3: search.deadline:", "past", "8h")
    ),
    "no deadline": Mistake(HEAD + "search: {deadline: tonight}\n", (":3: search.deadline: 'tonight'", "8h")),
    "an unwritable output": Mistake(
        HEAD + "artifacts: file/below\n", (":3: artifacts:", "file is not a folder"), regular_file
    ),
    "a zoo model that timm does not know": Mistake(
        HEAD + "space:\n  families: [zoo]\n  zoo: {model: [deit_tny_patch16_224.fb_in1k]}\n",
        ("search.yaml:5: space.zoo.model: 'deit_tny", "timm has deit_tiny_patch16_224.fb_in1k"),
    ),
    "a zoo model without weights": Mistake(
        HEAD + "space: {families: [zoo], zoo: {model: resnet18}}\n",
        (":3: space.zoo.model: 'resnet18' names no pretrained weights", "resnet18.a1_in1k", "weights_dir"),
    ),
    "a zoo model that is no name": Mistake(
        HEAD + "space: {families: [zoo], zoo: {model: [3]}}\n", (":3: space.zoo.model: 3 is not legal",)
    ),
    "weights that are not to be had": Mistake(
        HEAD + "space: {families: [zoo]}\n",
        (
            "space.zoo.model: the weights deit_tiny_patch16_224.fb_in1k are not on this",
            "training.weights_dir",
        ),
    ),
    "an image size that patches do not divide": Mistake(
        HEAD
        + "space: {families: [zoo], zoo: {model: [deit_tiny_patch16_224.fb_in1k], image_size: [64, 70]}}\n",
        (":3: space.zoo.image_size: 70 is not legal", "patches of 16 px do not divide 70 px", "legal: 64"),
    ),
    "more blocks than there are": Mistake(
        HEAD + "space: {families: [zoo], zoo: {blocks: [12, 13]}}\n",
        (":3: space.zoo.blocks: 13 is not legal", "has 12 blocks, not 13"),
    ),
    "dimensions of a zoo that is not searched": Mistake(
        HEAD + "space: {zoo: {blocks: [12]}}\n",
        (":3: space.zoo: is searched only where space.families names",),
    ),
    "FLOPs of a network that nobody knows": Mistake(
        HEAD
        + "objectives: [accuracy, flops]\ntraining: {recipe: plain}\n"
        + "space: {families: [zoo], zoo: {model: [resnet18.a1_in1k, mobilenetv3_small_100.lamb_in1k]}}\n",
        (":3: objectives: the FLOPs of mobilenetv3_small_100.lamb_in1k are not known", "space.zoo.model"),
    ),
    "a limit on FLOPs of a network that nobody knows": Mistake(
        HEAD
        + "constraints: {flops: 1e9}\ntraining: {recipe: plain}\n"
        + "space: {families: [zoo], zoo: {model: efficientnet_b0.ra_in1k}}\n",
        (":3: constraints.flops: the FLOPs of efficientnet_b0.ra_in1k are not known",),
    ),
    "fine-tuning what has no weights": Mistake(
        HEAD + "training: {recipe: finetune}\n",
        (":3: training.recipe: finetune needs weights", "vit, swin and hybrid have none", "use auto"),
    ),
    "a baseline to be fine-tuned without weights": Mistake(
        HEAD
        + "training: {recipe: finetune}\nspace: {families: [zoo]}\nbaselines: {mine: {model: resnet18}}\n",
        (":5: baselines.mine: recipe finetune needs weights", "weights: NAME"),
    ),
    "a baseline whose weights are not to be had": Mistake(
        HEAD + "baselines: {mine: {model: resnet18, weights: resnet18.mine}}\n",
        (":3: baselines.mine.weights: the weights resnet18.mine are not on this machine",),
    ),
    "a baseline whose weights are no name": Mistake(
        HEAD + "baselines: {mine: {model: resnet18, weights: ../x}}\n",
        (":3: baselines.mine.weights: '../x' is no name",),
    ),
    "a baseline of no image size": Mistake(
        HEAD + "baselines: {mine: {model: resnet18, image_size: 0}}\n",
        (":3: baselines.mine.image_size: 0 is outside 4 to 1024",),
    ),
    "a bound on a baseline that is not here": Mistake(
        HEAD + "constraints: {latency_ms: 1x deit_tiny}\n",
        (":3: constraints.latency_ms: this search has no baseline 'deit_tiny'", "there are: resnet"),
    ),
    "a folder of weights that is none": Mistake(
        HEAD + "training: {weights_dir: file}\n",
        (":3: training.weights_dir:", "file is not a folder"),
        regular_file,
    ),
    "weights that are a pickle": Mistake(
        OWN_WEIGHTS,
        (
            ":4: baselines.mine.weights:",
            "weights/resnet18.mine.pth: no weights that can be read: ",
            "leave resnet18.mine out",
        ),
        weights("resnet18.mine.pth", pickle.dumps(Path("/"), protocol=2)),
    ),
    "weights that were cut off": Mistake(
        OWN_WEIGHTS,
        (":4: baselines.mine.weights:", "weights/resnet18.mine.safetensors: no weights that can be read"),
        weights("resnet18.mine.safetensors", OTHERS[:-1]),
    ),
    "weights of another architecture": Mistake(
        OWN_WEIGHTS,
        (
            ":4: baselines.mine.weights: weights resnet18.mine do not fit resnet18: conv1.weight is [64, 1, 7, 7]",
            "the file lacks it",
            "weights/resnet18.mine.safetensors)",
        ),
        weights("resnet18.mine.safetensors", OTHERS),
    ),
    "weights of the zoo that are of another architecture": Mistake(
        HEAD + "training: {weights_dir: weights}\n"
        "space: {families: [zoo], zoo: {model: deit_tiny_patch16_224.mine, blocks: [3]}}\n",
        (
            ":4: space.zoo.model: weights deit_tiny_patch16_224.mine do not fit deit_tiny_patch16_224: ",
            "cls_token is [1, 1, 16] in the file, and [1, 1, 192] in the network",
        ),
        weights("deit_tiny_patch16_224.mine.safetensors", OTHERS),
    ),
    "an image that does not decode": Mistake(FOLDER, ("search.yaml:2: data", "0.png"), broken_images),
    "finalists, which are not built yet": Mistake(
        HEAD + "finalists: {count: 5}\n", (":3: finalists.count:", "yet")
    ),
}

VALID = {
    "the least": (HEAD, nothing),
    "a folder": (FOLDER, images("cat", "dog")),
    "rungs that end at the epochs": (HEAD + "search: {rungs: [2, 4]}\ntraining: {epochs: 4}\n", nothing),
    "no rungs": (HEAD + "search: {rungs: none, sampler: tpe}\n", nothing),
    "a patch that divides": (HEAD + "space:\n  families: [vit]\n  vit: {patch_size: [2, 4]}\n", nothing),
    "a bound on the baseline": (HEAD + "constraints: {latency_ms: 1.5x resnet}\n", nothing),
    "a baseline of timm": (
        HEAD + "baselines: {mine: {model: resnet18}}\nconstraints: {params: 2x mine}\n",
        nothing,
    ),
    "a baseline that pads its images to whole patches": (
        HEAD
        + "baselines: {mine: {model: vit_tiny_patch16_224, image_size: 40, "
        + "args: {img_size: 40, dynamic_img_size: true, dynamic_img_pad: true}}}\n",
        nothing,
    ),
    "the zoo from fresh weights": (
        HEAD + "training: {recipe: plain}\nspace: {families: [zoo, vit], zoo: {model: [resnet18.a1_in1k]}}\n",
        nothing,
    ),
    "FLOPs of a network that is known": (
        HEAD + "objectives: [accuracy, flops]\ntraining: {recipe: plain}\nspace: {families: [zoo]}\n",
        nothing,
    ),
    "a baseline of an image size of its own": (
        HEAD + "baselines: {mine: {model: vit_tiny_patch16_224, args: {img_size: 32}, image_size: 32}}\n",
        nothing,
    ),
    "a deadline to come": (HEAD + 'search: {deadline: "07:00"}\n', nothing),
    "an output to be made": (HEAD + "artifacts: new/below\n", nothing),
    "the CPU": (HEAD + "cost: {device: cpu}\n", nothing),
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARETOVIT_DB", raising=False)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_gets_one_or_two_lines_and_nothing_is_written(command, mistake, tmp_path, capsys):
    mistake.before(tmp_path)
    if mistake.text is not None:
        (tmp_path / "search.yaml").write_text(mistake.text)
    there = files(tmp_path)
    code = main([command, "search.yaml"])
    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 2
    assert err.startswith("paretovit: ")
    for words in mistake.says:
        assert words in err
    assert files(tmp_path) == there


@pytest.mark.parametrize("text, before", VALID.values(), ids=list(VALID))
def test_what_is_no_mistake_passes_the_checks_of_validate_and_run(text, before, tmp_path):
    before(tmp_path)
    (tmp_path / "search.yaml").write_text(text)
    there = files(tmp_path)
    assert check(load("search.yaml"), time.time()).plan.space.size() > 0
    assert files(tmp_path) == there


def test_validate_says_ok_and_what_it_found(tmp_path, capsys):
    images("cat", "dog")(tmp_path)
    (tmp_path / "search.yaml").write_text(FOLDER + 'search: {deadline: "07:00"}\n')
    there = files(tmp_path)
    assert main(["validate", "search.yaml"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[-1] == "ok"
    for words in (
        "hunt",
        "16 px, 3 channels",
        "2 classes",
        "16 train",
        "vit, swin, hybrid",
        "accuracy, latency_ms",
        "baselines    resnet; no pretrained deit_tiny and resnet18: the weights are not on this machine",
        "20 different candidates",
        "16 images decoded",
        "warning      vit, swin and hybrid will be trained from fresh weights on 16 images",
    ):
        assert words in out
    assert files(tmp_path) == there


@pytest.mark.parametrize(
    "mistake", ["training.epoch=3", "training.epochs=-1", "search.deadline=2001-01-01", "epochs"]
)
def test_a_mistake_in_an_override_names_the_option(mistake, tmp_path, capsys):
    (tmp_path / "search.yaml").write_text(HEAD)
    assert main(["run", "search.yaml", "--set", mistake]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"paretovit: --set {mistake.partition('=')[0]}: ")
    assert files(tmp_path) == {"search.yaml"}


@pytest.fixture
def database(tmp_path) -> Path:
    """A database that holds one search, `hunt`, which nobody drives."""
    from search.store.session import open_store
    from search.store.write import searches

    path = tmp_path / "paretovit.db"
    store = open_store(str(path), create=True)
    store.write(lambda session: searches.create(session, "hunt", {}, {}, str(tmp_path / "artifacts"), None))
    store.close()
    return path


def test_a_name_that_is_taken_offers_to_resume(database, tmp_path, capsys):
    (tmp_path / "search.yaml").write_text(HEAD)
    there = files(tmp_path)
    assert main(["run", "search.yaml"]) == 1
    err = capsys.readouterr().err
    assert "'hunt'" in err
    assert "paretovit resume hunt" in err
    assert len(err.splitlines()) <= 2
    assert files(tmp_path) == there


def newer_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE paretovit_version SET version_num = '9999'")
    connection.close()


READS = [
    ["status"],
    ["front", "hunt"],
    ["resume", "hunt"],
    ["db", "info"],
    ["db", "upgrade"],
    ["run", "search.yaml"],
]


@pytest.mark.parametrize("arguments", READS, ids=" ".join)
def test_a_newer_database_is_left_alone(arguments, database, tmp_path, capsys):
    (tmp_path / "search.yaml").write_text(HEAD)
    newer_database(database)
    before = database.read_bytes()
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert "newer paretovit" in err
    assert "paretovit.db" in err
    assert len(err.splitlines()) <= 2
    assert database.read_bytes() == before


@pytest.mark.parametrize("db", ["file/below.db", "missing/below.db", "images"])
def test_a_database_that_cannot_be_made_is_refused_before_anything_is_written(db, tmp_path, capsys):
    regular_file(tmp_path)
    empty_folder(tmp_path)
    (tmp_path / "search.yaml").write_text(HEAD)
    there = files(tmp_path)
    assert main(["run", "search.yaml", "--db", db]) in (1, 2)
    err = capsys.readouterr().err
    assert db.split("/")[0] in err
    assert len(err.splitlines()) <= 2
    assert files(tmp_path) == there


def test_a_file_that_is_no_database_is_left_alone(tmp_path, capsys):
    (tmp_path / "paretovit.db").write_text("not a database, but long enough to look like one " * 40)
    (tmp_path / "search.yaml").write_text(HEAD)
    shutil.copy(tmp_path / "paretovit.db", tmp_path / "copy")
    assert main(["run", "search.yaml"]) == 1
    assert "paretovit.db" in capsys.readouterr().err
    assert (tmp_path / "paretovit.db").read_bytes() == (tmp_path / "copy").read_bytes()


@pytest.mark.parametrize(
    "arguments", [["status"], ["front"], ["resume", "hunt"], ["db", "info"]], ids=" ".join
)
def test_a_missing_database_is_not_made_by_reading(arguments, tmp_path, capsys):
    assert main(arguments) in (1, 2)
    assert "paretovit.db" in capsys.readouterr().err
    assert files(tmp_path) == set()


def test_a_traceback_is_shown_only_when_asked_for(tmp_path):
    with pytest.raises(Exception, match="no such file"):
        main(["validate", "search.yaml", "--debug"])
