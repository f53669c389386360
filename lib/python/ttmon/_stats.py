"""Sums, in the manner of torch.cuda."""

from . import _library


def _chip_ids(device):
    """The unique ids that a device means: all, one by number or id, those of a ttnn device."""
    known = _library.chips()
    if device is None:
        return [id for id, _ in known]
    if isinstance(device, int):
        wanted = [device]
    elif hasattr(device, "get_device_ids"):
        wanted = list(device.get_device_ids())
    elif hasattr(device, "id"):
        wanted = [device.id() if callable(device.id) else device.id]
    else:
        raise TypeError(f"a device is a number, a chip's unique id or a ttnn device, not {type(device).__name__}")
    ids = [id for id, logical in known if logical in wanted or id in wanted]
    if not ids:
        raise ValueError(f"no chip of this process is {device!r}; it has {[logical for _, logical in known]}")
    return ids


def memory_stats(device=None):
    """A flat dictionary of numbers, for each pool (dram, l1, l1_small, trace):

    dram.allocated_bytes.current, .peak, .allocated (ever), .freed
    dram.blocks.current, .allocated
    dram.capacity_bytes, dram.left_bytes, dram.left_blocks, dram.num_ooms

    Bytes are over all banks, and summed over the chips of a mesh. A pool of
    which nothing is known is not in it.
    """
    stats = {}
    for pool in _library.POOLS:
        found = [u for u in (_library.query(id, pool) for id in _chip_ids(device)) if u is not None]
        if not found:
            continue

        def total(name):
            return sum(getattr(u, name) for u in found)

        stats.update(
            {
                f"{pool}.allocated_bytes.current": total("bytes"),
                f"{pool}.allocated_bytes.peak": total("peak_bytes"),
                f"{pool}.allocated_bytes.allocated": total("total_bytes"),
                f"{pool}.allocated_bytes.freed": total("total_bytes") - total("bytes"),
                f"{pool}.blocks.current": total("blocks"),
                f"{pool}.blocks.allocated": total("total_blocks"),
                f"{pool}.capacity_bytes": total("capacity"),
                f"{pool}.left_bytes": total("left_bytes"),
                f"{pool}.left_blocks": total("left_blocks"),
                f"{pool}.num_ooms": total("failed"),
            }
        )
    return stats


def process_stats(device=None):
    """This process's device memory, over all pools: device_bytes, device_peak_bytes, blocks."""
    stats = memory_stats(device)

    def total(name):
        return sum(value for key, value in stats.items() if key.endswith(name))

    return {
        "device_bytes": total(".allocated_bytes.current"),
        "device_peak_bytes": total(".allocated_bytes.peak"),
        "blocks": total(".blocks.current"),
    }


def human(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def memory_summary(device=None):
    """The same as a table for people."""
    rows = [("chip", "pool", "now", "peak", "of", "blocks", "left")]
    numbers = dict(_library.chips())
    for id in _chip_ids(device):
        for pool in _library.POOLS:
            u = _library.query(id, pool)
            if u is None or not (u.total_blocks or u.failed):
                continue
            rows.append(
                (str(numbers[id]), pool, human(u.bytes), human(u.peak_bytes), human(u.capacity), str(u.blocks), human(u.left_bytes))
            )
    if len(rows) == 1:
        return "no device memory has been allocated"
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in rows)
