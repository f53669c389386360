"""A ttnn program that loads its weights once and then works step by step.

It closes its device with the weights and the last result alive, as most do.

  weights.py [leak]

With leak it also keeps the result of each step.
"""

import sys
import time

import ttnn

device = ttnn.open_device(device_id=0)


def load():
    return [ttnn.empty([1, 1, 1024, 1024], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG) for _ in range(20)]


def step(weights):
    return ttnn.add(weights[0], weights[1])


weights = load()
kept = []
for _ in range(40):
    time.sleep(0.01)  # a step takes longer than the clock of libttmon is fine
    result = step(weights)
    if "leak" in sys.argv:
        kept.append(result)
ttnn.close_device(device)
