"""Device memory of Tenstorrent chips, exactly and from inside the process.

    import ttmon
    ttmon.attach()                      # best before ttnn is imported
    import ttnn
    ...
    with ttmon.tag("layer 7"):
        x = ttnn.empty(...)
    print(ttmon.memory_summary())
    ttmon.memory_stats(device)["dram.allocated_bytes.peak"]

Under `ttmon run -- python ...` the library is there already and attach() has
nothing to do. Where there is none, every function raises Unavailable, which
says what to do.
"""

from ._library import Unavailable, attach, attached, reset_peak, stacks, tag
from ._snapshot import Block, Frame, Pool, snapshot
from ._stats import memory_stats, memory_summary, process_stats
from ._daemon import Figure, detailed_stats, host_snapshot, system_stats
from ._version import __version__

__all__ = [
    "Block",
    "Figure",
    "Frame",
    "Pool",
    "Unavailable",
    "__version__",
    "attach",
    "attached",
    "detailed_stats",
    "host_snapshot",
    "memory_stats",
    "memory_summary",
    "process_stats",
    "reset_peak",
    "snapshot",
    "stacks",
    "system_stats",
    "tag",
]
