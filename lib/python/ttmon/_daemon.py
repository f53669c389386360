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
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return ["/run/ttmon/ttmond.sock"] + ([os.path.join(runtime, "ttmon/ttmond.sock")] if runtime else [])


def host_snapshot(socket_path=None, timeout=2.0):
    """The host's snapshot (ttmon.snapshot/1) from a running ttmond, as a dictionary."""
    error = None
    for path in [socket_path] if socket_path else _sockets():
        connection = _UnixConnection(path, timeout)
        try:
            connection.request("GET", "/v1/snapshot")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise OSError(f"ttmond: HTTP status {answer.status}: {body[:200]!r}")
            return json.loads(body)
        except OSError as e:
            error = error or e
        finally:
            connection.close()
    raise ConnectionError(f"no ttmond responds: {error}")
