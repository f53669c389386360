"""A ttnn program whose memory is known line by line.

Allocates and frees at random in functions of its own, and prints one line of
JSON at its end: for each pool the most that its allocator had given out (asked
after every step, in bytes of each bank), and the lines of the tensors that it
kept. It keeps some while it closes the device: those are what it leaves behind.

  sites.py SEED STEPS [keep]
"""

import json
import os
import random
import sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import ttnn  # noqa: E402

rng = random.Random(int(sys.argv[1]))
steps = int(sys.argv[2])
keep = len(sys.argv) > 3

POOLS = {"dram": ttnn.BufferType.DRAM, "l1": ttnn.BufferType.L1}


def tensor(device, pool, rows):
    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
    return ttnn.empty([1, 1, 32 * rows, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, memory)  # INNERMOST


class Model:
    def __init__(self, device):
        self.device = device

    def weights(self, rows):
        return tensor(self.device, "dram", rows), "weights"  # weights

    def cache(self, rows):
        return (
            tensor(
                self.device,
                "l1",
                rows,
            ),
            "cache",
        )  # the line of the call is that of its first line

    def both(self, rows):
        a = tensor(self.device, "dram", rows)
        b = ttnn.add(a, a)  # sum
        note(self.device)  # here a is there as well
        return b, "sum"


def lines():
    """The lines that the marks above stand on."""
    found = {}
    with open(__file__) as f:
        for number, text in enumerate(f, 1):
            if text.rstrip().endswith("# weights"):
                found["weights"] = number
            if text.strip() == "tensor(" and "cache" not in found:
                found["cache"] = number
            if text.rstrip().endswith("# sum"):
                found["sum"] = number
            if text.rstrip().endswith("# INNERMOST"):
                found["innermost"] = number
    return found


def given_out(device):
    try:
        return {name: ttnn.get_memory_view(device, pool).total_bytes_allocated_per_bank for name, pool in POOLS.items()}
    except TypeError:  # before 0.72 the view does not convert to Python
        ttnn.device.dump_device_memory_state(device, "step_")
        path = os.path.join(os.environ["TT_METAL_LOGS_PATH"], "generated/reports/step_memory_usage_summary.csv")
        with open(path) as f:
            rows = [[int(n) for n in line.strip().split(",")[1:]] for line in f.readlines()[1:3]]
        return {"dram": rows[0][1], "l1": rows[1][1]}


def note(device):
    for pool, now in given_out(device).items():
        peak[pool] = max(peak[pool], now)


device = ttnn.open_device(device_id=0)
model = Model(device)
live, peak = [], dict.fromkeys(POOLS, 0)
for _ in range(steps):
    if live and rng.random() < 0.45:
        ttnn.deallocate(live.pop(rng.randrange(len(live)))[0])
    else:
        make = rng.choice([model.weights, model.cache, model.both])
        live.append(make(rng.randint(1, 40)))
    note(device)

kept = {}
if keep:
    for _, what in live:
        kept[what] = kept.get(what, 0) + 1
else:
    live.clear()
ttnn.close_device(device)
print(json.dumps({"peak": peak, "kept": kept, "lines": lines()}), file=answers, flush=True)
