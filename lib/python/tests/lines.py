"""Holds the lines that libttmon recorded against those that Python itself tells.

Allocates through the library's own functions from all kinds of code; at each
allocation the frames are asked of Python, and compared with the block's stack.
"""

import ctypes
import itertools
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import ttmon  # noqa: E402
from ttmon import _library  # noqa: E402

ttmon.attach(stacks="python")
lib = _library.library()


class Spec(ctypes.Structure):
    _fields_ = [
        ("chip", ctypes.c_uint64),
        ("logical", ctypes.c_int32),
        ("pool", ctypes.c_uint32),
        ("banks", ctypes.c_uint32),
        ("capacity", ctypes.c_uint64),
        ("base", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    ]


lib.ttmon_list.argtypes = [ctypes.POINTER(Spec)]
lib.ttmon_alloc.argtypes = [ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
lib.ttmon_free.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
pool = lib.ttmon_list(ctypes.byref(Spec(7, 0, 0, 8, 1 << 40, 0, 64)))
assert pool, lib.ttmon_error()

expected = {}  # address -> frames
numbers = itertools.count(1)


def frames():
    out, f = [], sys._getframe(1)
    while f:
        name = getattr(f.f_code, "co_qualname", f.f_code.co_name)
        out.append((f.f_code.co_filename, f.f_lineno, name))
        f = f.f_back
    return out


def allocate():
    address = 4096 * next(numbers)
    # One line, so that both see the same one.
    lib.ttmon_alloc(pool, address, 64); expected[address] = frames()  # noqa: E702


class Layer:
    def forward(self):
        allocate()

    @staticmethod
    def static(depth):
        if depth:
            Layer.static(depth - 1)
        else:
            allocate()


def generator():
    for _ in range(3):
        allocate()
        yield


def many_lines():
    allocate(
        *[],
        **{},
    )
    (
        allocate()
        if True
        else None
    )


def in_exec(n):
    # Code objects that die and are made anew, at the same places in memory.
    for i in range(n):
        source = "\n" * (i % 7) + f"def f{i % 3}():\n    allocate()\nf{i % 3}()\n"
        exec(compile(source, f"<cell {i}>", "exec"), {"allocate": allocate})


def handlers():
    try:
        raise ValueError
    except ValueError:
        allocate()
    finally:
        allocate()


Layer().forward()
Layer.static(20)
list(generator())
[allocate() for _ in range(3)]
(lambda: allocate())()
many_lines()
in_exec(300)
handlers()
exec(compile("def straße():\n    allocate()\nstraße()", "/tmp/ünïcode/日本.py", "exec"), {"allocate": allocate})
threads = [threading.Thread(target=lambda: [Layer().forward() for _ in range(50)]) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()

DEPTH = 64  # the library goes no deeper
wrong = 0
[found] = [p for p in ttmon.snapshot() if p.pool == "dram"]
for b in found.blocks:
    want = expected.pop(b.address)[:DEPTH]
    got = [tuple(f) for f in b.stack]
    if got != want:
        wrong += 1
        if wrong < 3:
            print("recorded", got, "Python says", want, sep="\n  ")
print(f"{len(found.blocks)} stacks, {wrong} wrong, {len(expected)} missing")

with ttmon.tag("layer 7"):
    allocate()
assert any(b.tag == "layer 7" for p in ttmon.snapshot() for b in p.blocks)
stats = ttmon.memory_stats(0)
assert stats["dram.blocks.current"] == len(found.blocks) + 1, stats
assert stats["dram.allocated_bytes.current"] == 8 * 64 * (len(found.blocks) + 1), stats
for address in list(range(4096, 4096 * 11, 4096)):
    lib.ttmon_free(pool, address)
assert ttmon.memory_stats()["dram.allocated_bytes.peak"] == stats["dram.allocated_bytes.peak"]
ttmon.reset_peak()
now = ttmon.memory_stats(7)
assert now["dram.allocated_bytes.peak"] == now["dram.allocated_bytes.current"] < stats["dram.allocated_bytes.peak"], now
assert "dram" in ttmon.memory_summary()
sys.exit(1 if wrong or expected and len(expected) > 1 else 0)
