from __future__ import annotations

import pytest
from PIL import Image

from workers.data import sizes


def test_sizes_are_sampled_evenly_and_what_cannot_be_read_is_left_out(tmp_path):
    for name, count in (("cat", 30), ("dog", 10)):
        (tmp_path / name).mkdir()
        for number in range(count):
            Image.new("RGB", (40 if name == "cat" else 80, 30)).save(tmp_path / name / f"{number:02}.png")
    (tmp_path / "cat" / "broken.png").write_bytes(b"no picture")
    found = sizes.sample_sizes(tmp_path, most=20)
    assert 15 <= len(found) <= 20
    assert set(found) == {(40, 30), (80, 30)}
    assert found.count((40, 30)) > found.count((80, 30))
    assert sizes.median_side(found) == 30


@pytest.mark.parametrize(
    "side, largest, size", [(28, 128, 32), (64, 128, 64), (95, 128, 64), (500, 128, 128), (500, 64, 64)]
)
def test_a_size_is_usual_filled_and_allowed(side, largest, size):
    assert sizes.usual_size([(side, side + 50)] * 3, largest) == size
