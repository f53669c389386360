package selftest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/model"
)

// traces is what would show that a process touched a device: the driver's list of
// openers, its reference count, the power states, the heartbeats. Reading them
// touches nothing.
type traces struct {
	openers map[int][]string // pids, by device
	power   map[string]string
	beats   map[int]string // by device: those that had a heartbeat
	refs    string
	files   map[string]bool // what is there for all users to write: see leftBehind
}

func (t *test) readTraces(ctx context.Context, s *model.Snapshot) traces {
	out := traces{
		openers: t.readOpeners(s), power: map[string]string{}, refs: t.line("/sys/module/tenstorrent/refcnt"), files: t.readFiles(),
		beats: t.readBeats(ctx, s, func(d *model.Device) bool { return d.State == model.StateOK }),
	}
	for i := range s.Devices {
		for _, file := range []string{"power_state", "power/runtime_status"} {
			name := "/sys/bus/pci/devices/" + s.Devices[i].BusID + "/" + file
			if v := t.line(name); v != "" {
				out.power[name] = v
			}
		}
	}
	return out
}

func (t *test) readOpeners(s *model.Snapshot) map[int][]string {
	out := map[int][]string{}
	for i := range s.Devices {
		n := s.Devices[i].Index
		out[n] = strings.Fields(t.text(fmt.Sprintf("/proc/driver/tenstorrent/%d/pids", n)))
	}
	return out
}

// readBeats reads the heartbeats of devices with the other program: a file that
// does not answer must not hold us up.
func (t *test) readBeats(ctx context.Context, s *model.Snapshot, of func(*model.Device) bool) map[int]string {
	out := map[int]string{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if !of(d) {
			continue
		}
		file := path(t.root, d.Index, d.BusID, inClass, "tt_heartbeat")
		if read, err := readApart(ctx, []string{file}); err == nil && read[file] != "" {
			out[d.Index] = read[file]
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
func (t *test) harmless(ctx context.Context, r *report.Report, before traces, s *model.Snapshot) {
	after := t.readTraces(ctx, s)
	if len(s.Devices) > 0 {
		r.Add(openedByUs(before, after, t.mine()))
	}
	if len(before.power) > 0 {
		r.Add(powerRow(before, after))
	}
	t.heartbeats(ctx, r, before, s)
	if before.refs != "" && sameOpeners(before, after) {
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

func powerRow(before, after traces) report.Row {
	out := report.Row{Part: report.Harmless, What: "power states", Ours: "unchanged", Witness: "unchanged", By: "PCI files", Verdict: report.Right}
	if maps.Equal(before.power, after.power) {
		return out
	}
	out.Witness, out.Verdict, out.Note = "changed", report.Unknown, "a program that uses a device may have done that"
	if sameOpeners(before, after) {
		out.Verdict, out.Note = report.Wrong, "no other process used a device meanwhile"
	}
	return out
}

// beatWait is longer than any firmware takes from one beat to the next.
const beatWait = 1500 * time.Millisecond

// stillWait is longer than ttmon takes to say of a heart that it stands still.
const stillWait = 5 * time.Second

// heartbeats checks that chips that were alive before the test are alive now,
// and that ttmon knows.
func (t *test) heartbeats(ctx context.Context, r *report.Report, before traces, s *model.Snapshot) {
	had := func(d *model.Device) bool { return before.beats[d.Index] != "" }
	after := t.readBeats(ctx, s, had)
	sleep(ctx, beatWait)
	s = t.observeHearts(ctx)
	last := t.readBeats(ctx, s, had)
	for i := range s.Devices {
		d := &s.Devices[i]
		if t.hung[d.Index] {
			r.Add(hungRow(d))
		}
		first, ok := before.beats[d.Index]
		if !ok {
			note := "it was " + string(d.State) + " before the test"
			if !d.Heartbeat.Known() && d.State == model.StateOK {
				note = "there is none: " + d.Heartbeat.Reason()
			}
			r.Add(row(report.Harmless, "heartbeat, before and after", d.Index, report.Unknown, note))
			continue
		}
		r.Add(beatRow(d, first, after[d.Index], last[d.Index]))
	}
}

// observeHearts is a snapshot of a moment when it is known of every heart whether it
// beats, if that moment comes soon.
func (t *test) observeHearts(ctx context.Context) *model.Snapshot {
	for end := time.Now().Add(stillWait); ; sleep(ctx, 200*time.Millisecond) {
		s := t.snapshot(ctx)
		unseen := slices.ContainsFunc(s.Devices, func(d model.Device) bool { return heartUnseen(&d) })
		if !unseen || time.Now().After(end) || ctx.Err() != nil {
			return s
		}
	}
}

// hungRow compares the state of a device that ttmond reports as hung with our own
// reading, which had the time of the whole test to see a beat.
func hungRow(d *model.Device) report.Row {
	out := row(report.Host, "state by ttmond", d.Index, agree(d.State == model.StateHung), "")
	out.Ours, out.Witness, out.By = string(d.State), string(model.StateHung), "ttmond"
	if heartUnseen(d) {
		out.Verdict, out.Note = report.Unknown, tooShort
	}
	return out
}

const tooShort = "the test was too short to see a heartbeat"

// heartUnseen reports whether a device counts as ok only because it was not observed
// long enough to know better.
func heartUnseen(d *model.Device) bool {
	return d.State == model.StateOK && d.StateReason.Cause == model.HeartbeatUnseen
}

// beatRow judges three readings of a heartbeat: before the test, after it, and
// some time later; "" is one that could not be read.
func beatRow(d *model.Device, first, after, last string) report.Row {
	out := row(report.Harmless, "heartbeat, before and after", d.Index, report.Right, "")
	out.Ours, out.Witness, out.By = string(d.State), "beats", "tt_heartbeat, read by "+reader
	switch beats := last != "" && last != after; {
	case beats:
		out.Verdict = agree(d.State == model.StateOK)
	case first == after: // it stood still all the time: not our doing
		out.Witness, out.Verdict = "stands still", agree(d.State == model.StateHung)
		if heartUnseen(d) {
			out.Verdict, out.Note = report.Unknown, tooShort
		}
	default:
		out.Witness, out.Verdict, out.Note = "stopped", report.Wrong, "the chip was alive when the test began"
	}
	return out
}

// mine are the processes that the test started or asks, as text.
func (t *test) mine() []string {
	list := []string{strconv.Itoa(os.Getpid())}
	if pid := t.daemonPID(); pid != 0 {
		list = append(list, strconv.Itoa(pid))
	}
	return list
}

// sameOpeners reports whether the same processes, if any, used the devices all the
// time.
func sameOpeners(before, after traces) bool {
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
		out.Witness, out.Verdict, out.Note = "", report.Unknown, "this user may not read them"
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

// touches reports whether having a file open can touch a chip.
func touches(path string) bool {
	if strings.HasPrefix(path, deviceFolder) {
		return true
	}
	base := filepath.Base(path)
	return strings.Contains(path, "/pci") && (base == "config" || strings.HasPrefix(base, "resource"))
}
