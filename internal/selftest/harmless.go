package selftest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/selftest/report"
)

// traces is what would show that somebody touched a device: the driver's list of
// openers, its reference count, the power states. Reading them touches nothing.
type traces struct {
	openers map[int][]string // pids, by device
	power   map[string]string
	refs    string
}

func (t *test) readTraces(s *model.Snapshot) traces {
	out := traces{openers: map[int][]string{}, power: map[string]string{}, refs: t.line("/sys/module/tenstorrent/refcnt")}
	for i := range s.Devices {
		d := &s.Devices[i]
		out.openers[d.Index] = strings.Fields(t.text(fmt.Sprintf("/proc/driver/tenstorrent/%d/pids", d.Index)))
		for _, file := range []string{"power_state", "power/runtime_status"} {
			name := "/sys/bus/pci/devices/" + d.BusID + "/" + file
			if v := t.line(name); v != "" {
				out.power[name] = v
			}
		}
	}
	return out
}

func (t *test) text(path string) string {
	b, err := t.root.Read(path, 1<<20)
	if err != nil {
		return ""
	}
	return string(b)
}

func (t *test) line(path string) string { return strings.TrimSpace(t.text(path)) }

// harmless compares the traces of before the test with those of now, and looks
// at what this process and ttmond have open.
func (t *test) harmless(r *report.Report, before traces, s *model.Snapshot) {
	after := t.readTraces(s)
	if len(s.Devices) > 0 {
		r.Add(openedByUs(before, after, t.mine()))
	}
	if len(before.power) > 0 {
		out := report.Row{Part: report.Harmless, What: "power states", Ours: "unchanged", Witness: "unchanged", By: "PCI files", Verdict: report.Right}
		if !maps.Equal(before.power, after.power) {
			out.Witness, out.Verdict, out.Note = "changed", report.Unknown, "a program that uses a device may have done that"
			if t.idle(before, after) {
				out.Verdict, out.Note = report.Wrong, "nobody else used a device meanwhile"
			}
		}
		r.Add(out)
	}
	if before.refs != "" && t.idle(before, after) {
		r.Add(report.Row{
			Part: report.Harmless, What: "uses of the driver", Ours: before.refs, Witness: after.refs, By: "refcnt of the module",
			Verdict: agree(before.refs == after.refs),
		})
	}
	r.Add(t.descriptors("this process", os.Getpid()))
	if pid := t.daemonPID(); pid != 0 {
		r.Add(t.descriptors("ttmond", pid))
	}
}

// mine are the processes that the test started or asks, as text.
func (t *test) mine() []string {
	list := []string{strconv.Itoa(os.Getpid())}
	if pid := t.daemonPID(); pid != 0 {
		list = append(list, strconv.Itoa(pid))
	}
	return list
}

// idle tells whether the same processes, if any, used the devices all the time.
func (t *test) idle(before, after traces) bool {
	return maps.EqualFunc(before.openers, after.openers, slices.Equal)
}

func openedByUs(before, after traces, mine []string) report.Row {
	out := report.Row{Part: report.Harmless, What: "devices opened by ttmon", Ours: "none", Witness: "none", By: "the driver's lists of openers", Verdict: report.Right}
	for _, x := range []traces{before, after} {
		for device, pids := range x.openers {
			for _, pid := range pids {
				if slices.Contains(mine, pid) {
					out.Witness, out.Verdict = fmt.Sprintf("device %d by %s", device, pid), report.Wrong
				}
			}
		}
	}
	return out
}

// descriptors looks for files of a device that a process has open.
func (t *test) descriptors(who string, pid int) report.Row {
	out := report.Row{Part: report.Harmless, What: "files of devices open in " + who, Ours: "none", Witness: "none", By: "its descriptors", Verdict: report.Right}
	folder := t.root.Path(fmt.Sprintf("/proc/%d/fd", pid))
	names, err := os.ReadDir(folder)
	if err != nil {
		out.Witness, out.Verdict, out.Note = "", report.Unknown, "they may not be looked at by this user"
		return out
	}
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(folder, name.Name()))
		if err == nil && touches(target) {
			out.Witness, out.Verdict = target, report.Wrong
		}
	}
	return out
}

// touches tells whether having a file open can touch a chip.
func touches(path string) bool {
	if strings.HasPrefix(path, deviceFolder) {
		return true
	}
	base := filepath.Base(path)
	return strings.Contains(path, "/pci") && (base == "config" || strings.HasPrefix(base, "resource"))
}
