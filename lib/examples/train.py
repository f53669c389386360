"""Tags, sums and a snapshot of a ttnn program.

    ttmon run --stacks -- python train.py      # or plain python: attach() is enough
"""

import ttmon

ttmon.attach(stacks="python")

import ttnn  # noqa: E402

device = ttnn.open_device(device_id=0)
with ttmon.tag("kv-cache"):
    cache = ttnn.empty([1, 1, 4096, 1024], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG)
print(ttmon.memory_summary())
for pool in ttmon.snapshot():
    for block in pool.blocks:
        print(pool.pool, hex(block.address), block.bytes, block.tag, block.stack[-1] if block.stack else "")
ttnn.deallocate(cache)
ttnn.close_device(device)
