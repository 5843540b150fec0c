"""Which CPU this machine has. Standard library alone: it is carried to other machines too."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import subprocess
from functools import cache
from pathlib import Path


@cache
def cpu_name() -> str:
    """The processor's model name, or its architecture where the system does not tell."""
    if platform.system() == "Darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return " ".join(found[1].split()) if found else platform.processor() or platform.machine()


@cache
def cpu_id() -> str:
    """The same for the same machine in every process. Hashed: machine-id(5) asks that the id itself is not told."""
    digest = hashlib.sha256(f"paretovit {_machine_id()} {cpu_name()}".encode()).hexdigest()
    return f"cpu-{digest[:12]}"


def _machine_id() -> str:
    """The installation's id; where there is none (containers), the host's name."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        if text := _read(path).strip():
            return text
    found = re.search(
        r'"IOPlatformUUID" = "([^"]+)"', _output("ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
    )
    return found[1] if found else socket.gethostname()


def num_cores() -> int:
    """Of this machine's CPU, those that this process may use where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
