"""The package on the real ttnn: what it says equals what the allocator says.

on_ttnn.py before|after|late: whether it attaches before ttnn is imported, after
that, or after the device was opened and used.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
when = sys.argv[1]

import ttmon  # noqa: E402

if when == "before":
    ttmon.attach(stacks="python")
import ttnn  # noqa: E402

if when == "after":
    ttmon.attach(stacks="python")


def given_out(device, pool):
    try:
        view = ttnn.get_memory_view(device, pool)
        return view.total_bytes_allocated_per_bank, len([b for b in view.block_table if b["allocated"] == "yes"])
    except TypeError:  # before 0.72 the view does not convert to Python
        ttnn.device.dump_device_memory_state(device, "x_")
        path = os.path.join(os.environ["TT_METAL_LOGS_PATH"], "generated/reports/x_memory_usage_summary.csv")
        with open(path) as f:
            row = f.readlines()[{ttnn.BufferType.DRAM: 1, ttnn.BufferType.L1: 2}[pool]]
        return int(row.strip().split(",")[2]), None


def tensor(device, memory, rows=256):
    return ttnn.empty([1, 1, rows, 1024], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, memory)


device = ttnn.open_device(device_id=0)
early = [tensor(device, ttnn.DRAM_MEMORY_CONFIG), tensor(device, ttnn.L1_MEMORY_CONFIG)]
if when == "late":
    ttmon.attach(stacks="python")
with ttmon.tag("kv-cache"):
    cache = tensor(device, ttnn.DRAM_MEMORY_CONFIG, 512)
other = tensor(device, ttnn.L1_MEMORY_CONFIG)
ttnn.deallocate(early.pop(0))

pools = {p.pool: p for p in ttmon.snapshot() if p.blocks}
for name, kind in (("dram", ttnn.BufferType.DRAM), ("l1", ttnn.BufferType.L1)):
    want, blocks = given_out(device, kind)
    got = sum(b.bank_bytes for b in pools[name].blocks)
    assert got == want, f"{name}: {got} bytes a bank by ttmon, {want} by the allocator"
    assert blocks is None or blocks == len(pools[name].blocks), (name, blocks, pools[name].blocks)
[kept] = pools["dram"].blocks
assert kept.tag == "kv-cache", kept
assert kept.stack[-1].file == __file__ and "kv-cache" in open(__file__).read().splitlines()[kept.stack[-1].line - 2], kept.stack

if when != "late":  # of an allocator found in use the number of banks is not known
    stats = ttmon.memory_stats(device)
    banks = pools["dram"].banks
    assert stats["dram.allocated_bytes.current"] == given_out(device, ttnn.BufferType.DRAM)[0] * banks, stats
    assert stats["dram.blocks.allocated"] == 2, stats
    assert stats["dram.allocated_bytes.peak"] > stats["dram.allocated_bytes.current"], stats
    ttmon.reset_peak()
    assert ttmon.memory_stats(0)["dram.allocated_bytes.peak"] == stats["dram.allocated_bytes.current"]
    assert "dram" in ttmon.memory_summary()
ttnn.close_device(device)
if when != "late":
    assert ttmon.memory_stats()["dram.left_blocks"] == 1, ttmon.memory_stats()
print("ok")
