from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workers.data import pixels

RAMP = np.linspace(0, 255, 64).reshape(8, 8).round().astype(np.uint8)
COLOURS = np.stack([RAMP, 255 - RAMP, np.roll(RAMP, 3, 0)], -1)


def saved(image: Image.Image, tmp_path: Path, end: str = "png", **options) -> Path:
    path = tmp_path / f"picture.{end}"
    image.save(path, **options)
    return path


def test_rgb_comes_as_it_is(tmp_path: Path) -> None:
    assert np.array_equal(pixels.decode(saved(Image.fromarray(COLOURS), tmp_path), 8), COLOURS)


@pytest.mark.parametrize("end", ["png", "bmp", "tif", "webp"])
def test_grey_comes_as_three_equal_channels(end: str, tmp_path: Path) -> None:
    options = {"lossless": True} if end == "webp" else {}
    found = pixels.decode(saved(Image.fromarray(RAMP), tmp_path, end, **options), 8)
    assert np.array_equal(found, np.repeat(RAMP[..., None], 3, -1))


@pytest.mark.parametrize("end", ["png", "gif"])
def test_a_palette_is_looked_up(end: str, tmp_path: Path) -> None:
    indices = np.arange(64, dtype=np.uint8).reshape(8, 8) % 5
    palette = np.array([[9, 8, 7], [255, 0, 0], [0, 255, 0], [0, 0, 255], [1, 2, 3]], np.uint8)
    image = Image.fromarray(indices)
    image.putpalette(palette.ravel().tolist())
    assert image.mode == "P"
    assert np.array_equal(pixels.decode(saved(image, tmp_path, end), 8), palette[indices])


def test_a_palette_with_transparency_is_looked_up_without_a_warning(tmp_path: Path) -> None:
    image = Image.fromarray(np.zeros((8, 8), np.uint8))
    image.putpalette([10, 20, 30] * 2)
    path = saved(image, tmp_path, transparency=b"\x80\xff")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (pixels.decode(path, 8) == [10, 20, 30]).all()


def test_transparency_is_dropped(tmp_path: Path) -> None:
    image = Image.fromarray(np.dstack([COLOURS, np.full((8, 8), 77, np.uint8)]))
    assert image.mode == "RGBA"
    assert np.array_equal(pixels.decode(saved(image, tmp_path), 8), COLOURS)


@pytest.mark.parametrize("end", ["png", "tif"])
def test_16_bit_grey_is_scaled_and_not_clipped(end: str, tmp_path: Path) -> None:
    image = Image.fromarray(RAMP.astype(np.uint16) << 8 | 0x7F)
    found = pixels.decode(saved(image, tmp_path, end), 8)
    assert np.array_equal(found, np.repeat(RAMP[..., None], 3, -1))


def test_cmyk_is_converted(tmp_path: Path) -> None:
    cmyk = np.zeros((8, 8, 4), np.uint8)
    cmyk[..., 0], cmyk[..., 3] = 255 - RAMP, 0
    found = pixels.decode(saved(Image.fromarray(cmyk, "CMYK"), tmp_path, "tif"), 8)
    assert np.array_equal(found[..., 0], RAMP)
    assert (found[..., 1:] == 255).all()


def test_a_cmyk_jpeg_is_not_inverted(tmp_path: Path) -> None:
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    found = pixels.decode(saved(image, tmp_path, "jpg", quality=100), 8)
    assert np.abs(found.astype(int) - [255, 0, 0]).max() <= 3


TURNS = {
    1: lambda image: image,
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: np.rot90(image),
    7: lambda image: np.rot90(image, 2).swapaxes(0, 1),
    8: lambda image: np.rot90(image, -1),
}
"""What a camera stores of an upright picture, by the orientation that it notes."""


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("end", ["png", "tif", "webp"])
def test_a_picture_is_turned_as_its_exif_says(orientation: int, end: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(TURNS[orientation](COLOURS)))
    options = {"lossless": True} if end == "webp" else {}
    assert np.array_equal(pixels.decode(saved(stored, tmp_path, end, exif=exif, **options), 8), COLOURS)


def test_a_picture_is_cropped_at_its_centre(tmp_path: Path) -> None:
    wide = np.concatenate([np.zeros((8, 3, 3), np.uint8), COLOURS, np.zeros((8, 3, 3), np.uint8)], 1)
    assert np.array_equal(pixels.decode(saved(Image.fromarray(wide), tmp_path), 8), COLOURS)


def jpeg() -> bytes:
    file = io.BytesIO()
    Image.effect_noise((64, 64), 60).save(file, "jpeg")
    return file.getvalue()


def test_only_decoding_all_of_it_finds_a_truncated_jpeg() -> None:
    assert pixels.fault(jpeg(), whole=True) == ""
    assert pixels.fault(jpeg()[:-400]) == ""
    assert "truncated" in pixels.fault(jpeg()[:-400], whole=True)


@pytest.mark.parametrize(
    ("data", "fault"),
    [(b"", "the file is empty"), (b"text", "cannot be decoded (no image format that is known)")],
)
def test_what_is_no_picture_is_told_without_the_address_of_an_object(data: bytes, fault: str) -> None:
    assert pixels.fault(data) == fault


@pytest.mark.parametrize("most", [63 * 64, 64 * 64 // 3])
def test_a_bomb_is_refused_whatever_the_filters_of_warnings(most: int, tmp_path, monkeypatch) -> None:
    (tmp_path / "x.jpg").write_bytes(jpeg())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "too many pixels to decode safely" in pixels.fault(jpeg())
        with pytest.raises(pixels.UNREADABLE) as refused:
            pixels.decode(tmp_path / "x.jpg", 8)
    assert "too many pixels to decode safely" in pixels.reason(refused.value)


@pytest.mark.parametrize("count", [0, 1, 31, 33, 1000])
def test_threads_keep_the_order_and_beat(count: int, monkeypatch) -> None:
    monkeypatch.setattr(pixels, "_cores", lambda: 3)
    beats: list[None] = []
    assert list(pixels.in_threads(lambda item: item * 2, range(count), lambda: beats.append(None))) == [
        2 * item for item in range(count)
    ]
    assert len(beats) >= count // (3 * 32)


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_are_resized_as_pictures_are(channels: int, tmp_path: Path) -> None:
    picture = COLOURS[..., :channels]
    found = pixels.fit(picture[None], 5, lambda: None)
    path = saved(Image.fromarray(picture.squeeze()), tmp_path)
    assert np.array_equal(found[0], pixels.decode(path, 5)[..., :channels])
