"""Every live block, read from the ledger in this process's memory.

The layout is that of ttmon_ledger.h, version 1 (docs/ledger.md)."""

import ctypes
import struct
from collections import namedtuple

from . import _library

Frame = namedtuple("Frame", "file line function")
Pool = namedtuple("Pool", "chips pool banks capacity base blocks")
Pool.__doc__ = "A pool of an allocator; capacity and addresses are those of one bank."
Block = namedtuple("Block", "address bank_bytes bytes tag stack")
Block.__doc__ = "A block: bytes are over all banks; stack is a list of Frames, innermost first."

_CHIPS, _LISTS, _SITES, _FRAMES, _NODES, _STRINGS, _BLOCKS = range(7)
_NAMES = {number: name for name, number in _library.POOLS.items()}
_ATTEMPTS = 20


def snapshot():
    """The open pools of this process and their blocks, as of one moment."""
    base = _library.library().ttmon_region(None)
    if not base:
        reason = _library.library().ttmon_error()
        if reason:
            raise _library.Unavailable(reason.decode())
        return []
    return _decode(_whole(base))


def held_by_line():
    """Bytes and blocks that are live, or were left behind by closed devices, on all chips, by (file, line, function) of the innermost
    line outside packages. What tt-metal keeps for its program cache is not in it."""
    base = _library.library().ttmon_region(None)
    out = {}
    if not base:
        return out
    s = _whole(base)
    for n in range(1, len(s[_SITES]) // 128):
        owner, _, node = struct.unpack_from("<III", s[_SITES], 128 * n)
        live = struct.unpack_from("<QQ", s[_SITES], 128 * n + 16)
        left = struct.unpack_from("<QQ", s[_SITES], 128 * n + 64)
        (kept,) = struct.unpack_from("<I", s[_SITES], 128 * n + 100)
        if not owner or kept or not live[1] + left[1]:
            continue
        (banks,) = struct.unpack_from("<I", s[_LISTS], 256 * owner + 8)
        chips = max(int.from_bytes(s[_LISTS][256 * owner + 72 : 256 * owner + 104], "little").bit_count(), 1)
        frames = _stack(s, node)
        frame = next((f for f in frames if "site-packages" not in f.file), frames[0] if frames else Frame("?", 0, ""))
        bytes, blocks = out.get(frame, (0, 0))
        out[frame] = bytes + (live[0] + left[0]) * banks * chips, blocks + (live[1] + left[1]) * chips
    return out


def _whole(base):
    for _ in range(_ATTEMPTS):
        before = _epoch(base)
        sections = _copy(base)
        if before % 2 == 0 and _epoch(base) == before:
            return sections
    raise _library.Unavailable("the process allocates too fast for a snapshot: take it where it rests")


def _epoch(base):
    return ctypes.c_uint64.from_address(base + 16).value


def _copy(base):
    magic, version = ctypes.string_at(base, 8), ctypes.c_uint32.from_address(base + 8).value
    if magic != b"TTMONLDG" or version != 1:
        raise _library.Unavailable(f"a ledger of layout version {version}: this package knows 1")
    out = []
    for i in range(7):
        offset, size, _, used = struct.unpack_from("<QIII", ctypes.string_at(base + 424 + 24 * i, 24))
        out.append(ctypes.string_at(base + offset, size * used))
    return out


def _text(s, at):
    if not at:
        return ""
    (n,) = struct.unpack_from("<I", s[_STRINGS], at)
    return s[_STRINGS][at + 4 : at + 4 + n].decode(errors="replace")


def _stack(s, node):
    frames = []
    while node:
        node, frame = struct.unpack_from("<II", s[_NODES], 8 * node)
        file, function, line = struct.unpack_from("<III", s[_FRAMES], 16 * frame)
        frames.append(Frame(_text(s, file), line, _text(s, function)))
    return frames


def _decode(s):
    ids = [struct.unpack_from("<Q", s[_CHIPS], 16 * i)[0] for i in range(len(s[_CHIPS]) // 16)]
    pools = {}
    for n in range(1, len(s[_LISTS]) // 256):
        at = 256 * n
        state, pool = struct.unpack_from("<BB", s[_LISTS], at)
        if state != 1 or pool not in _NAMES:
            continue
        (banks,) = struct.unpack_from("<I", s[_LISTS], at + 8)
        capacity, low = struct.unpack_from("<QQ", s[_LISTS], at + 24)
        bits = int.from_bytes(s[_LISTS][at + 72 : at + 104], "little")
        chips = [id for i, id in enumerate(ids) if bits >> i & 1]
        pools[n] = Pool(chips, _NAMES[pool], banks, capacity, low, [])
    stacks = {}
    for n in range(len(s[_BLOCKS]) // 40):
        address, size, _, _, site = struct.unpack_from("<QQQqI", s[_BLOCKS], 40 * n)
        if not site:
            continue
        owner, tag, node = struct.unpack_from("<III", s[_SITES], 128 * site)
        if owner in pools:
            if node not in stacks:
                stacks[node] = _stack(s, node)
            pools[owner].blocks.append(Block(address, size, size * pools[owner].banks, _text(s, tag), stacks[node]))
    for p in pools.values():
        p.blocks.sort()
    return list(pools.values())
