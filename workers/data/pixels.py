"""Pictures to square uint8 arrays: decoding with Pillow, and resizing."""

from __future__ import annotations

import io
import os
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, ImageOps

from workers.data.listing import Beat

T = TypeVar("T")
R = TypeVar("R")
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error)
"""What Pillow raises for broken files, by format."""
REMEDY = "remove it or restore the image"
_MOST_THREADS = 8
_AT_A_TIME = 32


def fault(data: bytes, whole: bool = False) -> str:
    """Why `data` is no usable picture; "" where nothing is wrong.

    By its header, and by its checksums where it has some; a truncated JPEG passes. whole: by decoding all of it.
    """
    if not data:
        return "the file is empty"
    try:
        with _opened(io.BytesIO(data)) as image:
            if whole:
                image.load()
            else:
                image.verify()
    except UNREADABLE as error:
        return reason(error)
    return ""


def decode(file: Path | io.BytesIO, size: int) -> np.ndarray:
    """The picture as uint8 [size, size, 3]: turned as its EXIF says, centre-cropped, bicubic. Raises what Pillow does,
    one of UNREADABLE."""
    with _opened(file) as image:
        image.draft("RGB", (2 * size, 2 * size))
        upright = ImageOps.exif_transpose(image)
        return np.asarray(_square(_rgb(upright), size))


def reason(error: Exception) -> str:
    """Why a picture cannot be used, from one of UNREADABLE."""
    if isinstance(error, _TooLarge):
        return f"too many pixels to decode safely ({error})"
    text = str(error)
    shown = "no image format that is known" if "cannot identify image file" in text else text
    return f"cannot be decoded ({shown or type(error).__name__})"


def in_threads(work: Callable[[T], R], items: Sequence[T], beat: Beat) -> Iterator[R]:
    """`work` of every item, in order; `beat` is called every few. Pillow decodes without the interpreter's lock."""
    count = min(_MOST_THREADS, _cores())
    with warnings.catch_warnings():  # entered once: filters are the whole process's
        warnings.simplefilter("ignore")
        if count == 1 or len(items) <= _AT_A_TIME:
            for number, item in enumerate(items):
                if number % _AT_A_TIME == 0:
                    beat()
                yield work(item)
            return
        with ThreadPoolExecutor(count) as pool:
            for start in range(0, len(items), count * _AT_A_TIME):
                beat()
                yield from pool.map(work, items[start : start + count * _AT_A_TIME])


def fit(pixels: np.ndarray, size: int, beat: Beat) -> np.ndarray:
    """uint8 [n, h, w, channels] to [n, size, size, channels], centre-cropped, bicubic; itself where it has the size."""
    if pixels.shape[1:3] == (size, size):
        return pixels
    resized = np.empty((len(pixels), size, size, pixels.shape[3]), np.uint8)
    for number, picture in enumerate(pixels):
        if number % 256 == 0:
            beat()
        image = Image.fromarray(picture[:, :, 0] if pixels.shape[3] == 1 else picture)
        resized[number] = np.asarray(_square(image, size)).reshape(size, size, -1)
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
def _opened(file: Path | io.BytesIO) -> Iterator[Image.Image]:
    """Raises ValueError for what has too many pixels to decode safely, whatever the filters of warnings are."""
    try:
        with Image.open(file) as image:
            most = Image.MAX_IMAGE_PIXELS
            if most is not None and image.width * image.height > most:
                raise _TooLarge(f"{image.width} x {image.height}, more than {most:,}")
            yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise _TooLarge(str(error)) from error


class _TooLarge(ValueError):
    pass


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
