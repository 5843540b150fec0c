from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from workers.data import digests
from workers.data.dataset import index
from workers.data.digests import Digests, Known
from workers.settings import DataSettings

Make = Callable[..., Path]
KNOWN = Known(b"\x01" * 32, whole=False)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Image files that are read, in a cache of the test's own."""
    monkeypatch.setenv("PARETOVIT_CACHE", str(tmp_path / "cache"))
    seen: list[Path] = []
    plain = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.suffix == ".png":
            seen.append(path)
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    return seen


def aged(root: Path) -> Path:
    for path in root.rglob("*.png"):
        os.utime(path, (1e9, 1e9))
    return root


def forget() -> None:
    """As another process would."""
    digests._kept.clear()


def test_images_that_were_read_once_are_not_read_again_by_a_later_process(image_folder: Make, reads) -> None:
    settings = DataSettings("folder", str(aged(image_folder())))
    first = index(settings).digest
    assert len(reads) == 20
    forget()
    assert index(settings).digest == first
    assert len(reads) == 20


def test_a_changed_image_is_read_again_alone(image_folder: Make, reads) -> None:
    root = aged(image_folder())
    before = index(DataSettings("folder", str(root))).digest
    Image.new("RGB", (16, 12)).save(root / "cat" / "3.png")
    os.utime(root / "cat" / "3.png", (2e9 - 1e9, 1e9 + 1))
    forget()
    assert index(DataSettings("folder", str(root))).digest != before
    assert reads[20:] == [root / "cat" / "3.png"]


def test_what_was_changed_a_moment_ago_is_not_trusted(image_folder: Make, reads) -> None:
    settings = DataSettings("folder", str(image_folder()))
    index(settings)
    index(settings)
    assert len(reads) == 40


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-5], lambda data: data.replace(b"h", b"w", 1), lambda _: b""]
)
def test_a_damaged_index_is_noticed_and_made_again(image_folder: Make, reads, tmp_path, spoil) -> None:
    settings = DataSettings("folder", str(aged(image_folder())))
    index(settings)
    (stored,) = (tmp_path / "cache" / "digests").iterdir()
    good = stored.read_bytes()
    stored.write_bytes(spoil(good))
    forget()
    index(settings)
    assert len(reads) == 40
    assert stored.read_bytes() == good


def test_without_a_cache_a_process_still_reads_once(image_folder: Make, reads, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PARETOVIT_CACHE", "off")
    settings = DataSettings("folder", str(aged(image_folder())))
    index(settings)
    index(settings)
    assert len(reads) == 20
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", ["a\tb", "a\nb\\n", "\udcff.png", "größe"])
@pytest.mark.parametrize("fault", ["", "cannot\tbe\ndecoded \\t"])
def test_any_file_name_and_fault_comes_back(name: str, fault: str, tmp_path: Path) -> None:
    made = Digests(tmp_path / "d" / "x.txt")
    known = Known(KNOWN.digest, whole=True, fault=fault)
    made.put(name, (3, 4), known)
    made.save([name])
    assert Digests(tmp_path / "d" / "x.txt").get(name, (3, 4), whole=True) == known


def test_a_look_at_the_header_does_not_count_as_one_at_all_of_it(tmp_path: Path) -> None:
    made = Digests(None)
    made.put("a", (3, 4), KNOWN)
    assert made.get("a", (3, 4), whole=False) == KNOWN
    assert made.get("a", (3, 4), whole=True) is None
    assert made.get("a", (3, 5), whole=False) is None


def test_the_guard_against_hangs_hears_while_a_folder_is_read(image_folder: Make, reads) -> None:
    beats: list[int] = []
    index(DataSettings("folder", str(image_folder({"": 300}))), lambda: beats.append(len(reads)))
    assert len(reads) == 600
    gaps = [later - earlier for earlier, later in zip(beats, [*beats[1:], 600], strict=True)]
    assert max(gaps) <= 8 * 32
