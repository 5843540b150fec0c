"""scikit-learn's digits: 1,797 real handwritten digits of 8x8 pixels, without network."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from workers.data import pixels
from workers.data.listing import Beat, Listing
from workers.settings import DataSettings


def read(settings: DataSettings, beat: Beat = lambda: None) -> Listing:
    """All digits as one pool; grey values 0..16 scaled to 0..255. `content` covers these pixels."""
    from sklearn.datasets import load_digits

    beat()
    bunch: Any = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[..., None]
    size = settings.image_size or images.shape[1]
    return Listing(
        class_names=tuple(str(name) for name in bunch.target_names),
        labels=bunch.target.astype(np.int64),
        given=np.full(len(images), "", "U5"),
        image_size=size,
        channels=1,
        content=hashlib.sha256(images.tobytes()).hexdigest(),
        decode=lambda indices, beat: pixels.fit(images[indices], size, beat),
    )
