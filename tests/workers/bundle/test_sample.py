"""The images that go with a model, and how they were normalised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from workers.bundle import sample
from workers.bundle.request import Source
from workers.data import dataset
from workers.data.batches import to_device
from workers.errors import ExportError
from workers.settings import DataSettings

FACTS = {"mean": "[100.0]", "scale": "[0.02]"}


def source_of(settings: DataSettings, digest: str | None = None) -> Source:
    found = dataset.index(settings)
    listing = found.listing
    return Source(settings, digest or found.digest, listing.image_size, listing.channels, listing.class_names)


DIGITS = DataSettings("digits", train_limit=100, val_limit=50)


def test_validation_images_are_taken_all_over_their_split() -> None:
    data = dataset.load(DIGITS)
    found = sample.take(source_of(DIGITS), FACTS)
    assert found.words == "32 validation images"
    assert found.missing is None
    where = [
        next(i for i, one in enumerate(data.splits["val"].pixels) if np.array_equal(one, picture))
        for picture in found.pixels
    ]
    assert where == sorted(set(where))
    assert (where[0], where[-1]) == (0, 49)


def test_a_small_split_is_taken_whole() -> None:
    settings = DataSettings("digits", train_limit=100, val_limit=10)
    assert sample.take(source_of(settings), FACTS).words == "10 validation images"


def test_images_of_the_test_split_are_never_taken(image_folder: Callable[..., Path]) -> None:
    root = image_folder({"train": 6, "val": 2, "test": 5})
    settings = DataSettings("folder", path=str(root), image_size=8)
    found = sample.take(source_of(settings), {"mean": "[1, 1, 1]", "scale": "[1, 1, 1]"})
    assert np.array_equal(found.pixels, dataset.load(settings).splits["val"].pixels)


def test_the_checkpoint_says_how_images_were_normalised() -> None:
    found = sample.take(source_of(DIGITS), FACTS)
    pixels = torch.from_numpy(found.pixels)
    assert torch.equal(found.data.normalise(pixels), (pixels.permute(0, 3, 1, 2).float() - 100) * 0.02)


def test_for_an_older_checkpoint_it_is_measured_again() -> None:
    found = sample.take(source_of(DIGITS), {})
    trained = to_device(dataset.load(DIGITS), torch.device("cpu"))
    assert torch.equal(found.data.mean, trained.mean)
    assert torch.equal(found.data.scale, trained.scale)


def gone(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def changed(root: Path) -> None:
    (root / "cat" / "0.png").unlink()


@pytest.mark.parametrize(("harm", "said"), [(gone, "not a folder"), (changed, "the images have changed")])
def test_without_the_images_the_sample_is_noise_and_says_why(
    image_folder: Callable[..., Path], harm: Callable[[Path], None], said: str
) -> None:
    root = image_folder()
    source = source_of(DataSettings("folder", path=str(root), image_size=8))
    harm(root)
    facts = {"mean": "[100, 120, 140]", "scale": "[0.1, 0.05, 0.02]"}
    found = sample.take(source, facts)
    assert found.words == "32 noise images"
    assert said in str(found.missing)
    assert found.pixels.shape == (32, 8, 8, 3)
    assert found.pixels.mean((0, 1, 2)) == pytest.approx([100, 120, 140], rel=0.05)
    assert found.pixels.std((0, 1, 2)) == pytest.approx([10, 20, 50], rel=0.1)
    assert np.array_equal(found.pixels, sample.take(source, facts).pixels)
    with pytest.raises(ExportError, match=f"does not say how images were normalised, .* not here: .*{said}"):
        sample.take(source, {})


def test_an_image_that_cannot_be_decoded_any_more_makes_it_noise(
    image_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.data import pixels

    def fail(file: object, size: int) -> np.ndarray:
        raise OSError("broken data stream")

    source = source_of(DataSettings("folder", path=str(image_folder()), image_size=8))
    monkeypatch.setattr(pixels, "decode", fail)
    found = sample.take(source, {"mean": "[1, 1, 1]", "scale": "[1, 1, 1]"})
    assert "broken data stream" in str(found.missing)


def test_a_source_of_another_digest_is_of_other_images() -> None:
    source = dataclasses.replace(source_of(DIGITS), digest="0" * 32)
    assert "have changed" in str(sample.take(source, FACTS).missing)


@pytest.mark.parametrize("facts", [FACTS, {}])
def test_images_that_are_to_stay_are_not_taken(facts: dict[str, str]) -> None:
    found = sample.take(source_of(DIGITS), facts, images=False)
    assert found.words == "32 noise images"
    assert found.missing == "no images were to be brought along"
    pictures = {picture.tobytes() for picture in dataset.load(DIGITS).splits["val"].pixels}
    assert not pictures & {picture.tobytes() for picture in found.pixels}


def test_images_that_are_to_stay_are_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(DIGITS)
    monkeypatch.setattr(dataset, "index", lambda settings: pytest.fail("the images were read"))
    assert sample.take(source, FACTS, images=False).missing is not None
