"""Seconds of a call, its peak of memory, and processes of their own to take them in."""

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def in_own_process(module: str, mode: str, *arguments: object) -> Any:
    """What `python -m module mode arguments` prints as JSON. The mode "memory" takes peaks."""
    command = [sys.executable, "-m", module, mode, *map(str, arguments)]
    # Large arrays go back to the system when they are freed, so that no peak hides in memory kept for later.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)} if mode == "memory" else None
    return json.loads(subprocess.check_output(command, text=True, env=environment))


def timed_call(call: Callable[[], T]) -> tuple[float, T]:
    """Seconds of a call, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def seconds(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    return timed_call(call)[0]


def peak_above(call: Callable[[], object]) -> float | None:
    """Peak of memory in MB during a call, above what is held before it; None where the system keeps no such peak."""
    gc.collect()
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():  # only Linux keeps a peak that can be reset
        return None
    ctypes.CDLL(None).malloc_trim(0)  # else a call may work in what an earlier one has freed
    reset.write_text("5")
    before = kilobytes("VmRSS")
    call()
    return (kilobytes("VmHWM") - before) / 1024


def kilobytes(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0])
