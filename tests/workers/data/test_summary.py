from __future__ import annotations

import subprocess
import sys

from workers.data import dataset
from workers.data.summary import summarise
from workers.settings import DataSettings


def test_a_summary_agrees_with_the_images_that_are_loaded() -> None:
    settings = DataSettings("digits", train_limit=100)
    summary, data = summarise(settings), dataset.load(settings)
    assert summary.num_images == {name: len(split.labels) for name, split in data.splits.items()}
    assert summary.digest == data.digest
    assert (summary.image_size, summary.channels, summary.class_names) == (8, 1, data.class_names)


def test_a_summary_needs_no_torch() -> None:
    code = (
        "import sys; from workers.data.summary import summarise; from workers.settings import DataSettings;"
        "summarise(DataSettings('digits')); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
