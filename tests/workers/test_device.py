from __future__ import annotations

import subprocess
import sys

import pytest

from workers import device
from workers.errors import DeviceError


def test_the_cpu_has_the_same_id_in_every_process():
    code = "import sys; from workers import device; print(device.resolve('cpu').id); assert 'torch' not in sys.modules"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == device.resolve("cpu").id


def test_thread_counts_are_devices_of_their_own_that_share_one_lock():
    one, two = device.resolve("cpu", 1), device.resolve("cpu", 2)
    assert one.id != two.id
    assert one.lock == two.lock


def test_ids_name_files_and_do_not_tell_the_machine_id():
    cpu = device.resolve("cpu")
    assert all(letter.isalnum() or letter == "-" for letter in cpu.id)
    assert cpu.name


@pytest.mark.skipif(device.num_gpus() > 0, reason="this machine has a GPU")
def test_auto_is_the_cpu_where_there_is_no_gpu():
    assert device.resolve("auto") == device.resolve("cpu")


def test_auto_is_the_first_gpu_where_there_is_one(two_gpus):
    assert device.resolve("auto") == device.resolve("cuda:0") == device.resolve("cuda")
    assert device.resolve("auto").id == "gpu-1234-0"
    assert device.resolve("cuda:1").name == "Card 1"
    assert device.resolve("cuda:1").lock == "gpu-1234-1"


@pytest.mark.parametrize("name", ["cuda:2", "cuda:99"])
def test_a_gpu_that_is_not_there_is_refused_and_those_that_are_named(two_gpus, name):
    with pytest.raises(
        DeviceError, match=rf"'{name}' is not here; there is cpu \(.+\), cuda:0 \(Card 0\), cuda:1"
    ):
        device.check(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1"])
def test_a_name_that_is_none_is_refused(two_gpus, name):
    with pytest.raises(DeviceError, match="none of auto, cpu, cuda"):
        device.check(name)


def test_auto_and_cpu_are_always_there():
    device.check("auto")
    device.check("cpu")


@pytest.fixture
def two_gpus(monkeypatch):
    """Torch as it answers on a machine with two accelerators."""
    import torch

    class Properties:
        def __init__(self, index: int) -> None:
            self.uuid = f"1234_{index}"
            self.name = f"Card {index}"

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", Properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: Properties(index).name)
