"""The device lock: measurements have a device to themselves, trainings share it and step aside between steps.

Two files a device in a per-user folder. Trainings hold `<device>.lock` shared while they step. A measurement takes
`<device>.intent` exclusively, which trainings look at between steps, then `<device>.lock`, once the last training has
let go. Both are POSIX record locks (`lockf`): the system frees them at once when their holder dies, even while a
forked child of it lives on.

Record locks belong to a process and vanish when it closes any descriptor of the file. Hence one DeviceLock a process
for each device, descriptors that stay open, and one thread of a process at a time (first come, first served).
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import platformdirs

from workers.errors import DeviceError

Waiting = Callable[[], AbstractContextManager[object]]


@contextmanager
def exclusive(name: str, waiting: Waiting = nullcontext) -> Iterator[float]:
    """The device to ourselves, until the block ends; yields the seconds waited for it. Several callers queue.

    name: `Device.lock`. waiting: entered around the wait, e.g. `Watchdog.suspended`.
    Raises DeviceError where the folder of the locks cannot be used, RuntimeError when this thread holds the device.
    """
    lock = _lock(name)
    start = time.monotonic()
    with waiting():
        lock.take_exclusive()
    try:
        yield time.monotonic() - start
    finally:
        lock.give_exclusive()


@contextmanager
def sharing(
    names: Sequence[str], settle: Callable[[], object] = lambda: None, waiting: Waiting = nullcontext
) -> Iterator[Share]:
    """Shares devices with other trainings until the block ends; call `pause_if_wanted` on the result between steps.

    settle: called before a device is let go, to wait for work queued on it (`torch.cuda.synchronize`).
    """
    share = Share([_lock(name) for name in names], settle, waiting)
    with ExitStack() as stack:
        stack.callback(share.leave)
        share.enter()
        yield share


class Share:
    """A training's part in the devices that it uses."""

    def __init__(self, locks: Sequence[DeviceLock], settle: Callable[[], object], waiting: Waiting) -> None:
        self._locks = locks
        self._settle = settle
        self._waiting = waiting
        self._held: set[DeviceLock] = set()

    def pause_if_wanted(self) -> float:
        """Steps aside while a measurement wants one of the devices; returns the seconds waited, 0.0 mostly.

        A few microseconds when no one does.
        """
        if not any(lock.wanted() for lock in self._locks):
            return 0.0
        start = time.monotonic()
        self.leave()
        self.enter()
        return time.monotonic() - start

    def enter(self) -> None:
        with self._waiting():
            for lock in self._locks:
                lock.take_shared()
                self._held.add(lock)

    def leave(self) -> None:
        if self._held:
            self._settle()
        while self._held:
            self._held.pop().give_shared()


class DeviceLock:
    """The two record locks of one device. One a process: obtain it from `exclusive` and `sharing`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._device = _LockFile(folder / f"{name}.lock")
        self._intent = _LockFile(folder / f"{name}.intent")
        self._turns = _Turns()

    def take_exclusive(self) -> None:
        with ExitStack() as undo:
            self._turns.take()
            undo.callback(self._turns.give)
            self._intent.take(fcntl.LOCK_EX)
            undo.callback(self._intent.free)
            self._device.take(fcntl.LOCK_EX)
            undo.pop_all()

    def give_exclusive(self) -> None:
        self._device.free()
        self._intent.free()
        self._turns.give()

    def take_shared(self) -> None:
        with ExitStack() as undo:
            self._turns.take()
            undo.callback(self._turns.give)
            self._intent.take(fcntl.LOCK_SH)
            try:
                self._device.take(fcntl.LOCK_SH)
            finally:
                self._intent.free()
            undo.pop_all()

    def give_shared(self) -> None:
        self._device.free()
        self._turns.give()

    def wanted(self) -> bool:
        """Whether a measurement, or another thread of this process, waits for the device that we share."""
        return self._turns.wanted() or self._intent.taken()


class _LockFile:
    """One lock file, open for as long as the process lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked_at = 0.0
        self._open()

    def take(self, operation: int) -> None:
        """Waits for the lock."""
        while True:
            if self._moved():
                os.close(self._descriptor)
                self._open()
            try:
                fcntl.lockf(self._descriptor, operation)
            except OSError as error:
                if error.errno != errno.EDEADLK:
                    raise DeviceError(
                        f"{self._path}: locks do not work there ({error.strerror}); {REMEDY}"
                    ) from error
                # The system sees processes, not threads: another thread of ours will let go of what they wait for.
                time.sleep(0.001)
                continue
            if not self._moved():
                return

    def free(self) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN)

    def taken(self) -> bool:
        """Whether another process holds it exclusively, or it has to be opened anew (looked at once a second)."""
        if (now := time.monotonic()) - self._looked_at > 1.0:
            self._looked_at = now
            if self._moved():
                return True
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
        return False

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise DeviceError(f"{self._path}: cannot be opened ({error.strerror}); {REMEDY}") from error
        status = os.fstat(self._descriptor)
        if status.st_uid != os.geteuid():
            raise DeviceError(f"{self._path}: belongs to another user; {REMEDY}")
        self._identity = (status.st_dev, status.st_ino)

    def _moved(self) -> bool:
        """Whether the path names another file by now: runtime folders are cleared when their user logs out."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return True
        return (status.st_dev, status.st_ino) != self._identity


class _Turns:
    """One thread at a time, first come, first served."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[int] = deque()

    def take(self) -> None:
        thread = threading.get_ident()
        with self._changed:
            if thread in self._queue:
                raise RuntimeError("this thread holds the device already")
            self._queue.append(thread)
            served = False
            try:
                served = self._changed.wait_for(lambda: self._queue[0] == thread)
            finally:
                if not served:
                    self._queue.remove(thread)
                    self._changed.notify_all()

    def give(self) -> None:
        with self._changed:
            self._queue.popleft()
            self._changed.notify_all()

    def wanted(self) -> bool:
        return len(self._queue) > 1


REMEDY = "name a local folder of yours in PARETOVIT_RUNTIME_DIR"
_registry: dict[tuple[Path, str], DeviceLock] = {}
_registry_mutex = threading.Lock()


def runtime_folder() -> Path:
    """Where the lock files are: PARETOVIT_RUNTIME_DIR, else the user's runtime folder, else one in /tmp by user id.

    Raises DeviceError where the variable names what is no folder.
    """
    if named := os.environ.get("PARETOVIT_RUNTIME_DIR"):
        folder = Path(named).resolve()
        for place in (folder, *folder.parents):
            if place.exists() and not place.is_dir():
                raise DeviceError(
                    f"PARETOVIT_RUNTIME_DIR={named[:200]}: {place} is no folder; name one of yours"
                )
        return folder
    with (
        warnings.catch_warnings()
    ):  # platformdirs warns where XDG_RUNTIME_DIR is not set; its fallback is good
        warnings.simplefilter("ignore")
        return platformdirs.user_runtime_path("paretovit")


def _lock(name: str) -> DeviceLock:
    key = (runtime_folder(), name)
    with _registry_mutex:
        if key not in _registry:
            _registry[key] = DeviceLock(*key)
        return _registry[key]


def _forget() -> None:
    """In a forked child: record locks are not inherited, so none is held."""
    global _registry_mutex
    _registry_mutex = threading.Lock()
    _registry.clear()


os.register_at_fork(after_in_child=_forget)
