package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/lib/monitor"
)

// Programs that ask for the memory of a device in each language print a line for each
// pool: sum, its name, bytes and bound; then for each row of the whole device: its name,
// bytes, bound, total, free, largest free block and banks, "-" for what is not known.
const (
	statsCPP = `#include <cstdio>
#include <cstdlib>
#include "ttmon.hpp"
using Monitor = ttmon::SystemMemoryMonitor;
struct Device { int number; int id() const { return number; } };
static std::string text(const ttmon::Figure &f) {
	static const char *const bounds[] = {"exact", "at_least", "unsure", "missing"};
	return (f ? std::to_string(f.bytes) : "-") + " " + bounds[static_cast<int>(f.bound)];
}
template <class T> static std::string text(const std::optional<T> &n) { return n ? std::to_string(*n) : "-"; }
int main(int, char **argv) {
	const Device device{std::atoi(argv[1])};
	auto s = Monitor::get_system_stats(device.number);
	if (!s.error.empty()) {
		std::fprintf(stderr, "%s\n", s.error.c_str());
		return 1;
	}
	const std::pair<const char *, ttmon::Figure> sums[] = {{"dram", s.dram}, {"l1", s.l1}, {"l1_small", s.l1_small}, {"trace", s.trace}, {"cb", s.cb}, {"kernel", s.kernel}};
	for (const auto &[name, figure] : sums)
		std::printf("sum %s %s\n", name, text(figure).c_str());
	for (const auto &p : Monitor::get_detailed_stats(device.number).pools)
		if (p.chip == "all")
			std::printf("%s %s %s %s %s %s\n", p.pool.c_str(), text(p.used).c_str(), text(p.total).c_str(), text(p.free).c_str(), text(p.largest_free).c_str(), text(p.banks).c_str());
	return Monitor::get_process_stats(&device).device_bytes != 0; // this program holds nothing
}
`
	statsPython = `import sys, ttmon
def text(n): return "-" if n is None else str(int(n))
def bound(n): return "missing" if n is None else n.bound
device = int(sys.argv[1])
for pool, n in ttmon.system_stats(device).items():
    print("sum", pool, text(n), bound(n))
for row in ttmon.detailed_stats(device):
    if row["chip"] == "all":
        print(row["pool"], text(row["used_bytes"]), bound(row["used_bytes"]), *(text(row[k]) for k in ("total_bytes", "free_bytes", "largest_free_bytes", "banks")))
`
)

// askInGo is the same with lib/monitor.
func askInGo(ctx context.Context, device int) (string, error) {
	text := func(n uint64) string {
		if n == 0 {
			return "-"
		}
		return strconv.FormatUint(n, 10)
	}
	figure := func(f monitor.Figure) string {
		if f.Bound == monitor.Missing {
			return "- missing"
		}
		return fmt.Sprint(f.Bytes, " ", f.Bound)
	}
	list, err := monitor.Detailed(ctx, device)
	if err != nil {
		return "", err
	}
	sums, err := monitor.System(ctx, device)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range list {
		if p.Chip == "all" {
			fmt.Fprintf(&b, "sum %s %s\n", p.Name, figure(sums[p.Name]))
		}
	}
	for _, p := range list {
		if p.Chip == "all" {
			fmt.Fprintln(&b, p.Name, figure(p.Used), text(p.Total), text(p.Free), text(p.LargestFree), text(uint64(p.Banks)))
		}
	}
	return b.String(), nil
}

// TestUnifiedAPI: what a program learns of a device's memory in C++, Python and Go is
// what the programs on it hold: one that reports it, and a ttnn program that is watched.
func TestUnifiedAPI(t *testing.T) {
	u := newPrototype(t)
	u.daemon.mustWatch()
	t.Setenv("TTMON_SOCKET", u.daemon.api)
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	python := ttnn.Interpreter(t, ttnn.Newest)
	dir := t.TempDir()
	library := strings.TrimSpace(finish(t, exec.Command(filepath.Join(bin, "ttmon"), "run", "--library")).out)
	source, program := filepath.Join(dir, "stats.cpp"), filepath.Join(dir, "stats")
	if err := errors.Join(os.WriteFile(source, []byte(statsCPP), 0o600), os.WriteFile(filepath.Join(dir, "stats.py"), []byte(statsPython), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I"+filepath.Join(root, "lib/include"), source, library, "-Wl,-rpath,"+filepath.Dir(library), "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// ask asks about a device in all languages; what they say is the same.
	ask := func(device int) string {
		t.Helper()
		said, err := askInGo(t.Context(), device)
		if err != nil {
			t.Fatal(err)
		}
		inPython := u.host.Command(t.Context(), python, filepath.Join(dir, "stats.py"), strconv.Itoa(device))
		inPython.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "lib/python"))
		same := func(language string, cmd *exec.Cmd) {
			t.Helper()
			if r := finish(t, cmd); r.out != said {
				t.Errorf("device %d in %s:\n%s%s\nin Go:\n%s", device, language, r.out, r.err, said)
			}
		}
		same("C++", u.host.Command(t.Context(), program, strconv.Itoa(device)))
		same("Python", inPython)
		return said
	}
	has := func(said string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains("\n"+said, "\n"+line) {
				t.Errorf("no line %q in\n%s", line, said)
			}
		}
	}

	const mib = 1 << 20
	a := u.client(u.compiled(144), "1") // which is number 0 to it
	u.do(a, fmt.Sprint("alloc 0 1048576 ", 3000*mib, " 0"), "ok")
	u.do(a, fmt.Sprint("alloc 0 8192 ", 20*mib, " 1"), "ok")
	u.do(a, fmt.Sprint("cb_alloc 0 4096 ", 2*mib), "ok")
	u.do(a, fmt.Sprint("load 0 77 ", mib, " 0"), "ok")
	has(ask(1),
		fmt.Sprint("sum dram ", 3000*mib, " exact\n"), fmt.Sprint("sum l1 ", 20*mib, " exact\n"), "sum l1_small 0 exact\n",
		fmt.Sprint("sum cb ", 2*mib, " exact\n"), fmt.Sprint("sum kernel ", mib, " exact\n"),
		fmt.Sprint("dram ", 3000*mib, " exact 34225520640 - - 8\n"), // a reporter has no holes
		fmt.Sprint("kernel ", mib, " exact "))
	u.do(a, "free 0 8192", "ok")
	has(ask(1), "sum l1 0 exact\n")

	j := play(t, u.host, ttnn.Newest, true)
	for _, s := range []ttnn.Step{
		{"do": "open", "l1_small": 32768},
		{"do": "alloc", "name": "x", "pool": "dram", "bytes": 64 * mib},
		{"do": "alloc", "name": "y", "pool": "dram", "bytes": 8 * mib},
		{"do": "alloc", "name": "z", "pool": "l1", "bytes": mib},
		{"do": "free", "name": "x"},
	} {
		if _, err := j.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := j.Do(ttnn.Step{"do": "table"})
	if err != nil {
		t.Fatal(err)
	}
	said := ask(0)
	for _, pool := range []string{"dram", "l1", "l1_small"} {
		list := answer.Table[pool]
		has(said, fmt.Sprintf("sum %s %d exact\n", pool, j.Held[pool]))
		for _, line := range strings.Split(said, "\n") {
			f := strings.Fields(line)
			if len(f) == 7 && f[0] == pool && (f[4] != fmt.Sprint(list.Free*list.Banks) || f[5] != fmt.Sprint(list.Largest*list.Banks)) {
				t.Errorf("%s, the allocator has %d free and %d in one piece, in each of %d banks", line, list.Free, list.Largest, list.Banks)
			}
		}
	}
	if _, err := monitor.System(t.Context(), 9); err == nil {
		t.Error("device 9 has figures")
	}
	if r := finish(t, u.host.Command(t.Context(), program, "9")); r.code == 0 || !strings.Contains(r.err, "there is no device 9") {
		t.Errorf("device 9: exit code %d, %s", r.code, r.err)
	}
}
