"""Which device a figure belongs to: one physical accelerator by UUID, or one machine's CPU at a fixed thread count.

Torch is imported inside the functions that need it, so that `resolve("cpu")` and an import of this module stay light.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from workers.counting import counted
from workers.errors import DeviceError
from workers.measure.cpu import cpu_id, cpu_name, num_cores
from workers.settings import LABELLED


@dataclass(frozen=True)
class Device:
    """One device to train or measure on.

    torch: its name in torch, `cpu` or `cuda:N`. id: the same for the same hardware (and thread count, on a CPU) in
    every process; safe in file names. name: for people. threads: CPU threads that a measured model may use.
    """

    torch: str
    id: str
    name: str
    threads: int

    @property
    def is_cuda(self) -> bool:
        return self.torch.startswith("cuda")

    @property
    def lock(self) -> str:
        """Name of the exclusive lock: the accelerator's own, or the whole machine's for a CPU of any thread count."""
        return self.id if self.is_cuda else cpu_lock()


def resolve(name: str, threads: int = 1) -> Device:
    """`auto` (the first GPU, else the CPU), `cpu`, `cuda` or `cuda:N` as a Device; `label:NAME` is `auto`, on the
    machine that has the label and on those that train.

    Raises DeviceError, naming the devices that are here, when there is no such device.
    """
    name = "auto" if name.startswith(LABELLED) else name
    if name == "cpu" or (name == "auto" and num_gpus() == 0):
        return Device("cpu", f"{cpu_id()}-{threads}t", cpu_name(), threads)
    index = 0 if name in ("auto", "cuda") else _index(name)
    if not 0 <= index < num_gpus():
        raise DeviceError(f"device {name!r} is not here; there is {', '.join(available())}")
    import torch

    properties = torch.cuda.get_device_properties(index)
    return Device(f"cuda:{index}", f"gpu-{_safe(str(properties.uuid))}", properties.name, threads)


def check(name: str) -> None:
    """Raises DeviceError when `name` is no device of this machine. Imports torch only where a GPU is asked for."""
    if name not in ("auto", "cpu") and not name.startswith(LABELLED):
        resolve(name)


def available() -> list[str]:
    """The devices of this machine in words: `cpu (name)`, `cuda:0 (name)`, ..."""
    gpus = []
    if num_gpus():
        import torch

        gpus = [f"cuda:{index} ({torch.cuda.get_device_name(index)})" for index in range(num_gpus())]
    return [f"cpu ({cpu_name()})", *gpus]


def num_gpus() -> int:
    """Accelerators that torch can use in this process (CUDA_VISIBLE_DEVICES counts)."""
    import torch

    with warnings.catch_warnings():  # an old driver warns; `available` says it better
        warnings.simplefilter("ignore")
        return torch.cuda.device_count() if torch.cuda.is_available() else 0


def too_many_threads(threads: int) -> str | None:
    """Why a model cannot be measured here with so many, or None. More than there are cores measure how the system
    shares them out, and a few hundred cannot be started at all."""
    cores = num_cores()
    if threads <= cores:
        return None
    return f"{threads} is more than the {counted(cores, 'core')} that this process may use; lower it"


def cpu_lock() -> str:
    """Name of the lock that a measurement on this machine's CPU takes."""
    return cpu_id()


def _index(name: str) -> int:
    digits = name.removeprefix("cuda:")
    if not name.startswith("cuda:") or not digits.isdecimal():
        raise DeviceError(f"device {name!r} is none of auto, cpu, cuda, cuda:N")
    return int(digits)


def _safe(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z-]", "-", text)
