"""The host as ttmond sees it: JSON over HTTP on its Unix socket."""

import http.client
import json
import os
import socket


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("ttmond", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _sockets():
    if os.environ.get("TTMON_SOCKET"):
        return [os.environ["TTMON_SOCKET"]]
    home = os.environ.get("HOME", "")
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(home, ".local/state")
    dirs = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.geteuid()}", state]
    return ["/run/ttmon/ttmond.sock"] + [os.path.join(d, "ttmon/ttmond.sock") for d in dirs if os.path.isabs(d)]


def _get(target, socket_path, timeout):
    error = None
    for path in [socket_path] if socket_path else _sockets():
        connection = _UnixConnection(path, timeout)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 404:
                raise LookupError(f"ttmond: {body.decode(errors='replace').strip()}")
            if answer.status != 200:
                raise OSError(f"ttmond: HTTP status {answer.status}: {body[:200]!r}")
            return body
        except OSError as e:
            error = error or e
        finally:
            connection.close()
    raise ConnectionError(f"no ttmond responds: {error}")


def host_snapshot(socket_path=None, timeout=2.0):
    """The host's snapshot (ttmon.snapshot/1) from a running ttmond, as a dictionary."""
    return json.loads(_get("/v1/snapshot?interval=0s", socket_path, timeout))


class Figure(int):
    """Bytes, and how sure they are: bound is exact, at_least or unsure."""

    def __new__(cls, number, bound):
        figure = super().__new__(cls, number)
        figure.bound = bound
        return figure

    def __repr__(self):
        return f"Figure({int(self)}, {self.bound!r})"


def detailed_stats(device, socket_path=None, timeout=2.0):
    """Every pool of a device (N of /dev/tenstorrent/N) and of each of its chips, over all
    processes, as a list of dictionaries: device, bus_id, chip ("all" is the whole device),
    chip_id, pool, used_bytes (a Figure), total_bytes, free_bytes, largest_free_bytes, banks.
    What is not known is None.
    """
    head, *lines = _get(f"/v1/memory?device={int(device)}", socket_path, timeout).decode().splitlines()
    rows = []
    for line in lines:
        row = dict(zip(head.split(), line.split()))
        for name, text in row.items():
            if name not in ("bus_id", "chip", "pool", "bound"):
                row[name] = None if text == "-" else int(text)
        bound = row.pop("bound")
        if row["used_bytes"] is not None:
            row["used_bytes"] = Figure(row["used_bytes"], bound)
        rows.append(row)
    return rows


def system_stats(device, socket_path=None, timeout=2.0):
    """What all processes have allocated on a device, by pool: {"dram": Figure, ...}; what is
    not known is None.
    """
    return {row["pool"]: row["used_bytes"] for row in detailed_stats(device, socket_path, timeout) if row["chip"] == "all"}
