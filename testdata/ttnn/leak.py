"""Loads weights, then works step by step and loses a tensor in every other step."""
import sys
import time

import ttnn

device = ttnn.open_device(device_id=0)
lost, weights = [], []


def make(rows):
    return ttnn.empty([1, 1, 32 * rows, 32], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG)


def load():
    for n in range(12):
        weights.append(make(8))


def step(n):
    for _ in range(4):
        ttnn.deallocate(make(2))
    if n % 2:
        lost.append(make(1))


load()
last = None
for n in range(int(sys.argv[1])):
    step(n)
    last = make(4)
    time.sleep(0.02)  # a step takes longer than a busy machine keeps the program from running
ttnn.close_device(device)
