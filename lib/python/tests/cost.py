"""What Python lines add to an event: the same calls with and without, by CPU time."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import ctypes  # noqa: E402

import ttmon  # noqa: E402
from ttmon import _library  # noqa: E402

ttmon.attach()
lib = _library.library()
spec = (ctypes.c_uint64 * 6)(7, 0, 8, 1 << 40, 0, 64)  # struct ttmon_pool: chip; logical and pool; banks; capacity; base; alignment
lib.ttmon_list.argtypes = [ctypes.c_void_p]
lib.ttmon_alloc.argtypes = lib.ttmon_free.argtypes = None
pool = lib.ttmon_list(ctypes.addressof(spec))
assert pool, lib.ttmon_error()
alloc, free = lib.ttmon_alloc, lib.ttmon_free


def rounds(n):
    start = time.thread_time()
    for _ in range(n):
        alloc(pool, 4096, 64)
        free(pool, 4096)
    return (time.thread_time() - start) / n * 1e9


def at_depth(depth, n):
    return at_depth(depth - 1, n) if depth else min(rounds(n) for _ in range(7))


for depth in (3, 20):
    ttmon.stacks("none")
    without = at_depth(depth, 20000)
    ttmon.stacks("python")
    with_lines = at_depth(depth, 20000)
    print(f"Python lines, {depth + 3} frames deep: {with_lines - without:.0f} ns an allocation")
