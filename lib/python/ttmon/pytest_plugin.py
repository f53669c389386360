"""pytest --ttmon: device memory per test, and the tests that leak.

    pytest --ttmon                     a report of peaks and leaks at the end
    pytest --ttmon-fail-on-leak[=SIZE] a test that leaves more than SIZE behind fails

What a test allocated and neither freed nor gave back with its device counts;
what a fixture with a longer life holds does not, if it was there before.
"""

import gc

import pytest

from . import _library, _stats


def pytest_addoption(parser):
    group = parser.getgroup("ttmon", "device memory of Tenstorrent chips")
    group.addoption("--ttmon", action="store_true", help="report device memory per test")
    group.addoption(
        "--ttmon-fail-on-leak",
        nargs="?",
        const="0",
        default=None,
        metavar="SIZE",
        help="fail tests that leave more than SIZE (64K, 8M) of device memory behind; default: any",
    )


def pytest_configure(config):
    limit = config.getoption("--ttmon-fail-on-leak")
    if config.getoption("--ttmon") or limit is not None:
        if not _library.attached():
            _library.attach()
        _library.stacks("python")
        config.pluginmanager.register(_Watch(None if limit is None else _size(limit)), "ttmon-watch")


def _size(text):
    units = {"K": 10, "M": 20, "G": 30}
    text = text.upper().rstrip("IB")
    if text and text[-1] in units:
        return int(float(text[:-1]) * 2 ** units[text[-1]])
    return int(text)


class _Watch:
    def __init__(self, limit):
        self.limit = limit
        self.rows = []  # (test, peaks by pool, leaked bytes, blocks)

    def held(self):
        """Bytes and blocks that are live or were left behind, on all chips."""
        bytes, blocks = 0, 0
        for pool in _library.POOLS:
            for id, _ in _library.chips():
                u = _library.query(id, pool)
                if u is not None:
                    bytes += u.bytes + u.left_bytes
                    blocks += u.blocks + u.left_blocks
        return bytes, blocks

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        gc.collect()
        before = self.held()
        _library.reset_peak()
        item.ttmon_before = before
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        if call.when != "teardown":
            return
        gc.collect()
        report = outcome.get_result()
        bytes, blocks = (now - then for now, then in zip(self.held(), item.ttmon_before))
        stats = _stats.memory_stats()
        peaks = {p: stats.get(f"{p}.allocated_bytes.peak", 0) for p in _library.POOLS}
        if bytes > 0 or any(peaks.values()):
            self.rows.append((item.nodeid, peaks, max(bytes, 0), max(blocks, 0)))
        report.user_properties.append(("ttmon_leaked_bytes", max(bytes, 0)))
        if self.limit is not None and bytes > self.limit and report.passed:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} left {_stats.human(bytes)} of device memory behind, in {blocks} blocks" + self.where()

    def where(self):
        from ._snapshot import snapshot

        lines = {}
        for pool in snapshot():
            for b in pool.blocks:
                frame = next((f for f in b.stack if "site-packages" not in f.file), None)
                if frame:
                    key = f"{frame.file}:{frame.line} {frame.function}"
                    lines[key] = lines.get(key, 0) + b.bytes
        return "".join(f"\n  {_stats.human(n)}  {key}" for key, n in sorted(lines.items(), key=lambda x: -x[1])[:10])

    def pytest_terminal_summary(self, terminalreporter):
        if not self.rows:
            return
        terminalreporter.section("device memory")
        for test, peaks, leaked, blocks in self.rows:
            text = "  ".join(f"{p} {_stats.human(n)}" for p, n in peaks.items() if n)
            if leaked:
                text += f"  leaked {_stats.human(leaked)} in {blocks} blocks"
            terminalreporter.write_line(f"{test}  peak {text}")
