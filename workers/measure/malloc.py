"""Puts glibc's malloc into a known state, so that times and sizes do not depend on what the process did before.

With another C library nothing happens.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_IS_MAPPED = 2  # bit of a chunk's size field, which lies before the block
_SMALLEST_BLOCK = 64 * 1024
_LARGEST_BLOCK = 512 * 1024 * 1024
_LARGEST_THRESHOLD = 32 * 1024 * 1024


def settle_threshold() -> None:
    """Blocks over 32 MiB get mappings of their own, smaller ones come from the heap.

    glibc starts at 128 kB and goes up to this as blocks are freed: the first networks of a process would be slower.
    """
    if library := _glibc():
        library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_THRESHOLD)
        library.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_THRESHOLD)


def give_back() -> None:
    """Returns freed memory to the system: a process is else as large for good as its largest job was. Milliseconds."""
    if library := _glibc():
        library.malloc_trim(0)


@contextmanager
def fresh_blocks() -> Iterator[None]:
    """Every block over 64 kB is mapped when it is allocated and unmapped when it is freed, until the context ends.

    Holes that the heap has are filled meanwhile, with blocks that are never touched and so take no memory: malloc
    would serve from them, and its aligned blocks seldom fit where the last one was.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(_M_MMAP_THRESHOLD, _SMALLEST_BLOCK)
    library.mallopt(_M_TRIM_THRESHOLD, 2 * _SMALLEST_BLOCK)
    fillings = _fill_holes(library)
    library.malloc_trim(0)
    try:
        yield
    finally:
        for block in fillings:
            library.free(block)
        settle_threshold()


def _fill_holes(library: ctypes.CDLL) -> list[int]:
    fillings = []
    size = _LARGEST_BLOCK
    while size >= _SMALLEST_BLOCK:
        block = library.malloc(size)
        if block is None or _is_mapped(block):
            library.free(block)
            size = size * 3 // 4
        else:
            fillings.append(block)
    return fillings


def _is_mapped(block: int) -> bool:
    return bool(ctypes.c_size_t.from_address(block - ctypes.sizeof(ctypes.c_size_t)).value & _IS_MAPPED)


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library where it is glibc and its own malloc is in use (another may be preloaded)."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version") or not hasattr(library, "mallopt"):
        return None
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    return library if _is_own_malloc(library) else None


def _is_own_malloc(library: ctypes.CDLL) -> bool:
    """Whether `malloc` is the C library's: dladdr(3) tells which file a function comes from."""

    class Info(ctypes.Structure):
        _fields_ = (
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("name", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        )

    def origin(function: str) -> bytes:
        info = Info()
        address = ctypes.cast(getattr(library, function), ctypes.c_void_p)
        return info.file if library.dladdr(address, ctypes.byref(info)) else b""

    return origin("malloc") == origin("gnu_get_libc_version") != b""
