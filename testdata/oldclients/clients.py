"""The Python clients of the old allocation protocol, written again from their
struct formats.

    clients.py SOCKET KIND [ARGS]

KIND is one of the classes and functions below. client72 and client112 take
commands on standard input and answer each with a line.
"""

import os
import socket
import struct
import sys
import time


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(20)
    s.connect(path)
    return s


class Reporter:
    """allocation_client.py: counts its buffers 1, 2, 3; frees on device 0."""

    def __init__(self, path, fmt):
        self.sock, self.fmt, self.next_id = connect(path), fmt, 1
        self.zeros = len(struct.unpack(fmt, bytes(struct.calcsize(fmt)))) - 7

    def send(self, kind, device=0, size=0, buffer_type=0, pid=0, buffer_id=0, stamp=0):
        self.sock.send(struct.pack(self.fmt, kind, device, size, buffer_type, pid, buffer_id, stamp, *[0] * self.zeros))

    def allocate(self, device, size, buffer_type):
        buffer_id, self.next_id = self.next_id, self.next_id + 1
        self.send(1, device, size, buffer_type, os.getpid(), buffer_id, time.time_ns())
        return buffer_id

    def deallocate(self, buffer_id):
        self.send(2, pid=os.getpid(), buffer_id=buffer_id)

    def ask(self, kind, device):
        self.send(kind, device)
        return struct.unpack(self.fmt, self.sock.recv(struct.calcsize(self.fmt)))


def interactive(client):
    for line in sys.stdin:
        word, *args = line.split()
        args = [int(a, 0) for a in args]
        if word == "alloc":
            print(client.allocate(*args), flush=True)
        elif word == "free":
            client.deallocate(*args)
            print("ok", flush=True)
        elif word == "query":
            print(*client.ask(3, *args)[7:11], flush=True)
        elif word == "info":
            print(*client.ask(6, *args)[11:], flush=True)


def client72(path):
    interactive(Reporter(path, "=BxxxiQBxxxiQQQQQQ"))


def client112(path):
    interactive(Reporter(path, "=BxxxiQBxxxiQQQQQQQQIIIIII"))


def dump_remaining(path):
    s = connect(path)
    s.sendall(struct.pack("B3xiQB3xiQQ4Q", 5, 0, 0, 0, os.getpid(), 0, 0, 0, 0, 0, 0))
    s.close()


def query_stats(path, device="0"):
    """query_stats of REALTIME_MONITORING_EXAMPLE."""
    fmt = "=BBBB i Q BBBB i Q Q QQQQ QQIIIIII"
    s = connect(path)
    s.sendall(struct.pack(fmt, 3, 0, 0, 0, int(device), 0, 0, 0, 0, 0, 0, 0, 0, *[0] * 4, *[0] * 8))
    data = s.recv(112)
    assert len(data) == struct.calcsize(fmt) == 112, len(data)
    print(*struct.unpack(fmt, data)[13:17])


def broken_query(path):
    """The snippet of REALTIME_ALLOCATION_TRACKING_GUIDE, which packs 120 bytes
    and then unpacks 112 with a format of 104."""
    s = connect(path)
    s.sendall(struct.pack("=BBBBIQBBBBIQ8Q6I", 3, *[0] * 25))
    data = s.recv(112)
    print(len(data))
    try:
        struct.unpack("=BBBBIQBBBBIQ6Q6I", data)
    except struct.error as e:
        print("failed:", e)


def device_count(path):
    """The README's: asks with 144 bytes, reads 128 of the answer, leaves."""
    s = connect(path)
    s.sendall(struct.pack("<BxxxiQBxxxiQQ" + "6Q2Q6I4I", 6, -1, 0, 0, 0, 0, 0, *[0] * 18))
    data = s.recv(128)
    print(len(data), struct.unpack_from("<I", data, 124)[0])
    s.close()


def realtime_monitor(path):
    s = connect(path)
    s.sendall(struct.pack("BxxxIQQ", 2, 0, 0, 0))
    data = b""
    while chunk := s.recv(4096):
        data += chunk
    for record in struct.iter_unpack("QQQQQQ", data):
        print(*record)


def query_all(path):
    s = connect(path)
    s.sendall(b"QUERY_ALL\n")
    data = b""
    while b"\n\n" not in data:
        chunk = s.recv(4096)
        if not chunk:
            break
        data += chunk
    s.close()
    print(data.decode(), end="")


def helpers(path, *commands):
    """instrumented_helpers.hpp: 32 bytes, TYPE:DEVICE:SIZE:ID each."""
    s = connect(path)
    for c in commands:
        kind, device, size, buffer_id = (int(x, 0) for x in c.split(":"))
        s.sendall(struct.pack("<B3xiQQi4x", kind, device, size, buffer_id, os.getpid()))
    print("ok", flush=True)
    sys.stdin.readline()


def forked(path):
    """Two processes that report on one connection, as after a fork: commands
    go to the parent, those that begin with "child" to the child, and all to
    the child after "exit"."""
    s = connect(path)

    def do(word, *args):
        kind = {"alloc": 1, "free": 2}[word]
        size, buffer_id = (args[1], args[2]) if kind == 1 else (0, args[1])
        s.sendall(struct.pack("<BxxxiQBxxxiQQ104x", kind, args[0], size, 0, os.getpid(), buffer_id, 0))

    def obey(line):
        word, *args = line.split()
        do(word, *(int(a, 0) for a in args))

    down, up = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(down[1])
        os.close(up[0])
        for line in os.fdopen(down[0]):
            obey(line)
            os.write(up[1], b"ok\n")
        for line in sys.stdin:  # the parent has gone
            obey(line)
            print("ok", flush=True)
        return
    os.close(down[0])
    os.close(up[1])
    print(child, flush=True)
    answers = os.fdopen(up[0])
    while line := os.read(0, 4096).decode():
        if line.startswith("exit"):
            print("ok", flush=True)
            os._exit(0)
        if line.startswith("child "):
            os.write(down[1], line[6:].encode())
            answers.readline()
        else:
            obey(line)
        print("ok", flush=True)


def probe(path):
    connect(path).close()


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:])
