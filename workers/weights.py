"""Where pretrained weights are: a file in `weights_dir`, in Hugging Face's cache, or on its hub. Without torch.

Names are timm's, such as `deit_tiny_patch16_224.fb_in1k`; the hub keeps each as `timm/NAME`. Nothing is read here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, HTTPError  # pyright: ignore[reportPrivateImportUsage]
from huggingface_hub.utils import tqdm

from workers.errors import MachineError, WeightsError

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
"""Of files in `weights_dir`; the first that is there is taken."""

_HUB_FILES = ("model.safetensors", "pytorch_model.bin")
_HUB_SECONDS = 2.0
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,94}")
_HUB_TROUBLE = (OSError, HTTPError, ValueError, RuntimeError)


def reachable(name: str, weights_dir: str | None) -> bool:
    """Whether `locate` would find the weights; asks the hub, for 2 seconds at most, where they are not here already.

    Never raises. Set HF_HUB_OFFLINE=1 to keep it from asking.
    """
    if not _NAME.fullmatch(name):
        return False
    return find_local(name, weights_dir) is not None or _is_on_hub(name)


def locate(name: str, weights_dir: str | None, beat: Callable[[], object] = lambda: None) -> Path:
    """The file of the weights `name`, downloaded into Hugging Face's cache where it is not here already.

    beat: called while bytes arrive. Raises WeightsError, naming the file that is needed and where it may be put, and
    MachineError for a download that broke off.
    """
    if not _NAME.fullmatch(name):
        raise WeightsError(f"weights {name[:100]!r}: no name of pretrained weights")
    found = find_local(name, weights_dir)
    return _download(name, weights_dir, beat) if found is None else found


def find_local(name: str, weights_dir: str | None) -> Path | None:
    """The file of the weights on this machine: in `weights_dir`, else in Hugging Face's cache."""
    if weights_dir is not None:
        for suffix in SUFFIXES:
            path = Path(weights_dir, name + suffix)
            if path.is_file():
                return path
    for filename in _HUB_FILES:
        cached = huggingface_hub.try_to_load_from_cache(_repository(name), filename)
        if isinstance(cached, str):
            return Path(cached)
    return None


def _repository(name: str) -> str:
    return f"timm/{name}"


def _is_on_hub(name: str) -> bool:
    """In a thread, because looking a host's name up cannot be given a limit."""
    found: list[str | None] = []
    asking = threading.Thread(target=lambda: found.append(_ask_hub(name)), daemon=True)
    asking.start()
    asking.join(_HUB_SECONDS)
    return any(found)


def _ask_hub(name: str) -> str | None:
    """The file's name there; None where the hub has no such weights or does not answer."""
    if constants.HF_HUB_OFFLINE:
        return None
    for filename in _HUB_FILES:
        url = huggingface_hub.hf_hub_url(_repository(name), filename)
        try:
            huggingface_hub.get_hf_file_metadata(url, timeout=_HUB_SECONDS)
        except EntryNotFoundError:
            continue
        except _HUB_TROUBLE:
            return None
        return filename
    return None


def _download(name: str, weights_dir: str | None, beat: Callable[[], object]) -> Path:
    filename = _ask_hub(name)
    if filename is None:
        folder = "a folder that training.weights_dir names" if weights_dir is None else weights_dir
        raise WeightsError(
            f"weights {name} are neither on this machine nor to be had from the hub (timm/{name}); "
            f"put them into {folder} as {name}{SUFFIXES[0]}"
        )

    class Beats(tqdm):
        """Stays silent."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            beat()
            return super().update(n)

    try:
        return Path(huggingface_hub.hf_hub_download(_repository(name), filename, tqdm_class=Beats))
    except _HUB_TROUBLE as error:
        raise MachineError(f"weights {name}: the download broke off: {error}") from error
