"""Pictures to square uint8 arrays: decoding with Pillow, and resizing."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from workers.data.listing import Beat, DataError

UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error)
"""What Pillow raises for broken files, by format."""


def check(path: Path, data: bytes) -> None:
    """Raises DataError when `data` is no picture by its header, or by its checksums where it has some.

    A truncated JPEG passes: only decoding finds it.
    """
    if not data:
        raise DataError(f"{path}: the file is empty; remove it or restore the image")
    with _as_errors(path), Image.open(io.BytesIO(data)) as image:
        image.verify()


def decode(path: Path, size: int) -> np.ndarray:
    """The picture as uint8 [size, size, 3]: turned as its EXIF says, centre-cropped, bicubic."""
    with _as_errors(path), Image.open(path) as image:
        image.draft("RGB", (2 * size, 2 * size))
        upright = ImageOps.exif_transpose(image)
        return np.asarray(_square(_rgb(upright), size))


def fit(pixels: np.ndarray, size: int, beat: Beat) -> np.ndarray:
    """uint8 [n, h, w, 1] to [n, size, size, 1], centre-cropped, bicubic; itself where it has the size."""
    if pixels.shape[1:3] == (size, size):
        return pixels
    resized = np.empty((len(pixels), size, size, 1), np.uint8)
    for number, picture in enumerate(pixels):
        if number % 256 == 0:
            beat()
        resized[number, :, :, 0] = np.asarray(_square(Image.fromarray(picture[:, :, 0]), size))
    return resized


def _square(image: Image.Image, size: int) -> Image.Image:
    return ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit grey, which Pillow would clip instead of scaling
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    if image.mode == "P":  # palettes with transparency warn when they lose it in one step
        image = image.convert("RGBA")
    return image.convert("RGB")


@contextmanager
def _as_errors(path: Path) -> Iterator[None]:
    """Turns what Pillow raises on a broken picture or a decompression bomb into a DataError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: too many pixels to decode safely ({error}); scale it down") from error
    except PermissionError as error:
        raise DataError(f"{path}: permission denied; make the file readable") from error
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot be decoded ({error}); remove it or restore the image") from error
