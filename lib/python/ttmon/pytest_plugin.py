"""pytest --ttmon: device memory per test, and the tests that leak.

    pytest --ttmon                   a report of peaks and leaks at the end
    pytest --ttmon-fail-on-leak      a test that leaves device memory behind fails
    pytest --ttmon-leak-limit=8M     the same, above so much

What a test allocated and neither freed nor gave back with its device counts;
what a fixture with a longer life holds does not, if it was there before.
"""

import gc

import pytest

from . import _library, _stats
from ._snapshot import held_by_line


def pytest_addoption(parser):
    group = parser.getgroup("ttmon", "device memory of Tenstorrent chips")
    group.addoption("--ttmon", action="store_true", help="report device memory per test")
    group.addoption("--ttmon-fail-on-leak", action="store_true", help="fail tests that leave device memory behind")
    group.addoption("--ttmon-leak-limit", default=None, metavar="SIZE", help="fail tests that leave more than SIZE (64K, 8M) behind")


def pytest_configure(config):
    limit = config.getoption("--ttmon-leak-limit")
    if limit is None and config.getoption("--ttmon-fail-on-leak"):
        limit = "0"
    if config.getoption("--ttmon") or limit is not None:
        if not _library.attached():
            _library.attach()
        _library.stacks("python")
        config.pluginmanager.register(_Watch(None if limit is None else _size(limit)), "ttmon-watch")


def _size(text):
    units = {"K": 10, "M": 20, "G": 30}
    digits = text.upper().rstrip("IB")
    try:
        if digits and digits[-1] in units:
            return int(float(digits[:-1]) * 2 ** units[digits[-1]])
        return int(digits)
    except ValueError:
        raise pytest.UsageError(f"--ttmon-leak-limit: {text!r} is no size such as 512, 64K or 8M") from None


class _Watch:
    def __init__(self, limit):
        self.limit = limit
        self.rows = []  # (test, peaks by pool, leaked bytes, blocks)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        gc.collect()
        _library.reset_peak()
        item.ttmon_before = held_by_line()
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        if call.when != "teardown":
            return
        gc.collect()
        report = outcome.get_result()
        now = held_by_line()
        bytes, blocks = (sum(x[i] for x in now.values()) - sum(x[i] for x in item.ttmon_before.values()) for i in (0, 1))
        stats = _stats.memory_stats()
        peaks = {p: stats.get(f"{p}.allocated_bytes.peak", 0) for p in _library.POOLS}
        if bytes > 0 or any(peaks.values()):
            self.rows.append((item.nodeid, peaks, max(bytes, 0), max(blocks, 0)))
        report.user_properties.append(("ttmon_leaked_bytes", max(bytes, 0)))
        if self.limit is not None and bytes > self.limit and report.passed:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} left {_stats.human(bytes)} of device memory behind, in {blocks} blocks" + self.where(item, now)

    def where(self, item, now):
        grown = {f: n - item.ttmon_before.get(f, (0, 0))[0] for f, (n, _) in now.items()}
        lines = sorted(((n, f) for f, n in grown.items() if n > 0), reverse=True)[:10]
        return "".join(f"\n  {_stats.human(n)}  {f.file}:{f.line} {f.function}" for n, f in lines)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.rows:
            return
        terminalreporter.section("device memory")
        for test, peaks, leaked, blocks in self.rows:
            text = "  ".join(f"{p} {_stats.human(n)}" for p, n in peaks.items() if n)
            if leaked:
                text += f"  leaked {_stats.human(leaked)} in {blocks} blocks"
            terminalreporter.write_line(f"{test}  peak {text}")
