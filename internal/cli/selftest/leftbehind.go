package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// readFiles lists the files of this user in the folders that every program may
// write to.
func (t *test) readFiles() map[string]bool {
	found := map[string]bool{}
	for _, folder := range []string{t.root.Path("/dev/shm"), os.TempDir()} {
		list, _ := os.ReadDir(folder)
		for _, entry := range list {
			found[filepath.Join(folder, entry.Name())] = true
		}
	}
	return found
}

// leftBehind checks at the very end that no process of the test has a device
// open, and that no file of it is left.
func (t *test) leftBehind(r *report.Report, before traces) {
	var left, regions []string
	for path := range t.readFiles() {
		if before.files[path] {
			continue
		}
		switch base := filepath.Base(path); {
		case t.oursByName(base):
			left = append(left, base)
		case isRegion(base):
			regions = append(regions, base)
		}
	}
	out := report.Row{
		Part: report.Harmless, What: "files left behind", Ours: "none", Witness: "none", By: "names in /dev/shm and " + os.TempDir(),
		Verdict: agree(len(left) == 0),
	}
	if len(left) > 0 {
		slices.Sort(left)
		out.Witness = strings.Join(left, ", ")
	}
	if len(regions) > 0 && len(t.jobs) > 0 {
		out.Note = fmt.Sprintf("tt-metal made %d accounting regions in /dev/shm, and keeps them, as after every program: others may use them by now", len(regions))
	}
	r.Add(out)
	if len(t.jobs) > 0 {
		r.Add(t.jobsGone())
	}
}

// oursByName reports whether a file is one that the test makes: its own folder, or
// the ledger of a program that it ran.
func (t *test) oursByName(base string) bool {
	if base == t.folder && base != "" {
		return true
	}
	rest, ok := strings.CutPrefix(base, ledgerfile.Prefix)
	pid, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(pid)
	return ok && err == nil && slices.Contains(t.jobs, n)
}

// isRegion reports whether a file is one of tt-metal's accounting regions.
func isRegion(base string) bool {
	return strings.HasPrefix(base, "tt_device_") && strings.HasSuffix(base, "_memory")
}

// jobsGone checks that no process of a program that the test ran is left: each
// had a process group of its own.
func (t *test) jobsGone() report.Row {
	out := report.Row{Part: report.Harmless, What: "processes left behind", Ours: "none", Witness: "none", By: "their process groups", Verdict: report.Right}
	for _, pid := range t.jobs {
		if groupAlive(pid) {
			out.Witness, out.Verdict = fmt.Sprintf("of the ttnn program %d", pid), report.Wrong
		}
	}
	return out
}

// groupAlive reports whether a process group has a member; one that was killed is
// given some time to go.
func groupAlive(group int) bool {
	for end := time.Now().Add(2 * killWait); ; time.Sleep(20 * time.Millisecond) {
		if errors.Is(unix.Kill(-group, 0), unix.ESRCH) {
			return false
		}
		if time.Now().After(end) {
			return true
		}
	}
}
