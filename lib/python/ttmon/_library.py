"""libttmon.so through ctypes."""

import contextlib
import ctypes
import os
import shutil
import subprocess

POOLS = {"dram": 0, "l1": 1, "l1_small": 3, "trace": 4}
ANY_CHIP = 2**64 - 1
_MODES = {None: 0, "none": 0, "python": 1, "native": 2, "all": 3}


class Unavailable(RuntimeError):
    """There is no libttmon in this process, or it cannot keep a ledger."""


class Usage(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "bytes",
            "blocks",
            "peak_bytes",
            "total_bytes",
            "total_blocks",
            "capacity",
            "left_bytes",
            "left_blocks",
            "failed",
        )
    ]


def _declare(lib):
    lib.ttmon_version.restype = ctypes.c_uint32
    lib.ttmon_error.restype = ctypes.c_char_p
    lib.ttmon_path.restype = ctypes.c_char_p
    lib.ttmon_region.restype = ctypes.c_void_p
    lib.ttmon_region.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
    lib.ttmon_tag_push.argtypes = [ctypes.c_char_p]
    lib.ttmon_query.argtypes = [ctypes.c_uint64, ctypes.c_uint32, ctypes.POINTER(Usage)]
    lib.ttmon_chips.restype = ctypes.c_size_t
    lib.ttmon_chips.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int32), ctypes.c_size_t]
    return lib


def _preloaded():
    lib = ctypes.CDLL(None)
    return lib if hasattr(lib, "ttmon_version") else None


def _candidates(path):
    if path:
        yield path
        return
    if os.environ.get("TTMON_LIBRARY"):
        yield os.environ["TTMON_LIBRARY"]
    yield os.path.join(os.path.dirname(__file__), "libttmon.so")
    program = shutil.which("ttmon")
    if program:  # it carries the library
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            out = subprocess.run([program, "run", "--library"], capture_output=True, text=True, timeout=10)
            yield out.stdout.strip()
    yield "libttmon.so"


_lib = _preloaded()
if _lib is not None:
    _declare(_lib)


def attached():
    """Whether this process has libttmon in it."""
    return _lib is not None


def library():
    if _lib is None:
        raise Unavailable("libttmon is not in this process: call ttmon.attach(), or start it with `ttmon run -- ...`")
    return _lib


def attach(path=None, stacks=None):
    """Takes libttmon into this process, and with it every allocation of tt-metal.

    Before ttnn is imported all is seen. Later, devices that are opened from
    then on are seen whole; of open ones, what they allocate from then on, and
    the blocks that they had. path is a libttmon.so; by default $TTMON_LIBRARY,
    one in this package, that of the ttmon program, or an installed one. stacks
    is "python", "native" or "all", to record call sites.
    """
    global _lib
    if _lib is None:
        tried = []
        for candidate in _candidates(path):
            try:
                # Global: tt-metal, loaded later, finds our functions first.
                _lib = _declare(ctypes.CDLL(candidate, mode=ctypes.RTLD_GLOBAL))
                break
            except OSError as e:
                tried.append(str(e))
        if _lib is None:
            raise Unavailable("no libttmon.so: install ttmon, or set TTMON_LIBRARY. Tried: " + "; ".join(tried))
        if _metal_is_loaded() and _lib.ttmon_attach() < 0:
            raise Unavailable(f"attaching to tt-metal: {_lib.ttmon_error().decode()}")
    if stacks is not None:
        globals()["stacks"](stacks)


def _metal_is_loaded():
    with open("/proc/self/maps", "rb") as f:
        return b"/libtt_metal.so" in f.read()


def stacks(mode):
    """Records call sites from now on: "python", "native", "all" or "none"."""
    if mode not in _MODES:
        raise ValueError(f"stacks are python, native, all or none, not {mode!r}")
    library().ttmon_stacks(_MODES[mode])


@contextlib.contextmanager
def tag(name):
    """What this thread allocates inside belongs to the tag."""
    if _lib is None:  # tags may stay in a program that is not watched
        yield
        return
    _lib.ttmon_tag_push(str(name).encode())
    try:
        yield
    finally:
        _lib.ttmon_tag_pop()


def reset_peak():
    """Peaks count from now on."""
    library().ttmon_reset_peak()


def chips():
    """(unique id, logical number) of the chips that this process has had."""
    lib = library()
    ids, logical = (ctypes.c_uint64 * 256)(), (ctypes.c_int32 * 256)()
    n = min(lib.ttmon_chips(ids, logical, 256), 256)
    return [(ids[i], logical[i]) for i in range(n)]


def query(chip, pool):
    """Usage of a pool, or None where nothing is known of it."""
    usage = Usage()
    if library().ttmon_query(chip, POOLS[pool], ctypes.byref(usage)) != 0:
        return None
    return usage
