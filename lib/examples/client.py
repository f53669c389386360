"""client.c in Python: reports what it allocates over ttmond's allocation socket.

    python3 lib/examples/client.py DEVICE

It holds its memory until its standard input ends.
"""

import os
import socket
import struct
import sys
import time

DRAM, L1, HOST, L1_SMALL, TRACE = range(5)


class Allocations:
    """A connection to ttmond; without one, reports are dropped."""

    # type, device, size, pool, pid, address, time, and 104 bytes that a report does not need
    message = struct.Struct("<B3xiQB3xiQQ104x")

    def __init__(self, path=os.environ.get("ALLOC_SOCKET", "/tmp/tt_allocation_server.sock")):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.settimeout(1)
        try:
            self.server.connect(path)
        except OSError:
            self.server = None

    def _report(self, kind, device, pool, address, size):
        if self.server is None:
            return
        try:
            self.server.sendall(self.message.pack(kind, device, size, pool, os.getpid(), address, time.time_ns()))
        except OSError:
            self.server = None

    def allocated(self, device, pool, address, size):
        self._report(1, device, pool, address, size)

    def freed(self, device, address):
        self._report(2, device, 0, address, 0)


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "0"
    chip = os.open(f"/dev/tenstorrent/{device}", os.O_RDWR)  # as a program on tt-metal has
    report = Allocations()
    report.allocated(0, DRAM, 0x100000, 512 << 20)
    report.allocated(0, L1, 0x2000, 4 << 20)
    report.allocated(0, L1, 0x800000, 4 << 20)
    report.freed(0, 0x800000)
    print("512 MiB of DRAM and 4 MiB of L1", flush=True)
    sys.stdin.read()
    os.close(chip)


if __name__ == "__main__":
    main()
