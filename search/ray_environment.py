"""Environment variables that Ray reads as it is imported: quiet, on loopback, and leaving signals to us."""

from __future__ import annotations

import os

_ALWAYS = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "RAY_ROTATION_MAX_BYTES": str(16 * 2**20),  # a log; else 512 MiB, five times
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or a job without a GPU share would see no GPU
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}
# Despite its name, on every system: without it a local Ray listens on the machine's address, not on loopback.
_LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def prepare() -> None:
    """Sets what the user has not set. To be called before `ray` is imported."""
    settings = _ALWAYS if os.environ.get("RAY_ADDRESS") else _ALWAYS | _LOCAL
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    if path := os.environ.get("PYTHONPATH"):  # workers run in another folder
        os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in path.split(os.pathsep) if p)


def silence() -> None:
    """After `ray.init`: Ray's own lines on workers that die stay out of the terminal, where the driver tells of them.

    No setting of Ray's leaves them out (`log_to_driver=False` does not); this is the switch by which Ray's debugger
    does.
    """
    from ray._private import worker

    worker._worker_logs_enabled = False
