"""A ttnn program that notes what its allocator says, with the time.

Allocates and frees at random and runs some ops, and after each step writes a
line of JSON to a file: the time (Unix nanoseconds), and every block of each
pool, by the allocator's own table. While a line is written nothing happens.

  recorded.py FILE SEED STEPS
"""

import json
import random
import sys
import time

import ttnn

log = open(sys.argv[1], "w")
rng = random.Random(int(sys.argv[2]))
POOLS = {"dram": ttnn.BufferType.DRAM, "l1": ttnn.BufferType.L1}


def note(device):
    pools = {}
    for name, pool in POOLS.items():
        view = ttnn.get_memory_view(device, pool)
        pools[name] = sorted([int(b["address"]), int(b["size"])] for b in view.block_table if b["allocated"] == "yes")
    log.write(json.dumps({"ns": time.time_ns(), "pools": pools}) + "\n")


def tensor(device, pool, rows):
    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
    return ttnn.empty([1, 1, 32 * rows, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, memory)


device = ttnn.open_device(device_id=0)
held = []
for step in range(int(sys.argv[3])):
    if held and (rng.random() < 0.4 or len(held) > 40):
        ttnn.deallocate(held.pop(rng.randrange(len(held))))
    elif held and rng.random() < 0.1:
        one = rng.choice(held)
        held.append(ttnn.add(one, one))
    else:
        held.append(tensor(device, rng.choice(["dram", "l1"]), rng.randint(1, 30)))
    note(device)
    if step % 50 == 0:
        print("step", step, flush=True)
for t in held:
    ttnn.deallocate(t)
note(device)
ttnn.close_device(device)
log.close()
