package collect

import (
	"bytes"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// oomWatch finds out which processes the kernel killed for want of memory: from its
// log, which names them; where that cannot be read, from the counters of their
// control groups, which any user may read.
type oomWatch struct {
	root  hostfs.Root
	kills func() ([]model.OOMKill, bool) // nil: the log is not read

	files  map[model.ProcessID]string // that counts the kills of the process's control group; empty: none does
	counts map[string]uint64          // of each file, at the last snapshot
	gone   map[string][]model.ProcessID
	exited map[model.ProcessID]oomEvidence
}

// oomEvidence is what is known of a process that has left its devices.
type oomEvidence struct {
	began   time.Time
	counted bool // its control group had a kill for each process that left meanwhile
}

// oomSlack is how far the clocks of log and snapshots may be apart.
const oomSlack = time.Second

// left takes in that a process has left its devices.
func (o *oomWatch) left(id model.ProcessID, began time.Time) {
	if o.exited == nil {
		o.exited, o.gone = map[model.ProcessID]oomEvidence{}, map[string][]model.ProcessID{}
	}
	o.exited[id] = oomEvidence{began: began}
	if file := o.files[id]; file != "" {
		o.gone[file] = append(o.gone[file], id)
	}
	delete(o.files, id)
}

// readCounters reads the counters of control groups, where the log cannot be read. It comes
// after left.
func (o *oomWatch) readCounters(now map[model.ProcessID]time.Time) {
	if o.kills != nil {
		if _, known := o.kills(); known {
			clear(o.gone)
			return
		}
	}
	for file, list := range o.gone {
		before, known := o.counts[file]
		if n, ok := o.count(file); known && ok && n >= before+uint64(len(list)) {
			for _, id := range list {
				o.exited[id] = oomEvidence{o.exited[id].began, true}
			}
		}
	}
	clear(o.gone)
	if o.files == nil {
		o.files = map[model.ProcessID]string{}
	}
	counts := map[string]uint64{}
	for id := range now {
		file, known := o.files[id]
		if !known {
			file = o.find(id.PID)
			o.files[id] = file
		}
		if _, done := counts[file]; done || file == "" {
			continue
		}
		if n, ok := o.count(file); ok {
			counts[file] = n
		}
	}
	o.counts = counts
}

// maxOOMFile bounds the files of control groups that are read.
const maxOOMFile = 8 << 10

// find is the file that counts the kills of a process's control group.
func (o *oomWatch) find(pid int) string {
	text, err := o.root.Read("/proc/"+strconv.Itoa(pid)+"/cgroup", maxOOMFile)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		file := ""
		switch {
		case !ok || !path.IsAbs(group) || path.Clean(group) != group: // ".." leads out of our namespace
		case controllers == "memory":
			file = path.Join("/sys/fs/cgroup/memory", group, "memory.oom_control")
		case controllers == "":
			file = path.Join("/sys/fs/cgroup", group, "memory.events")
		}
		if _, ok := o.count(file); ok {
			return file
		}
	}
	return ""
}

// count is how many processes of a control group the kernel has killed.
func (o *oomWatch) count(file string) (n uint64, ok bool) {
	if file == "" {
		return 0, false
	}
	text, err := o.root.Read(file, maxOOMFile)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		if digits, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill ")); is {
			n, err = strconv.ParseUint(string(digits), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// judge marks the exits of processes that were killed for want of memory.
func (o *oomWatch) judge(list []model.Exit) {
	var kills []model.OOMKill
	if o.kills != nil {
		kills, _ = o.kills()
	}
	for i := range list {
		x := &list[i]
		evidence, known := o.exited[x.ID]
		status, ended := x.Status.Get()
		if x.OutOfMemory || x.Alive || !known || ended && unix.Signal(status&0x7f) != unix.SIGKILL {
			continue
		}
		x.OutOfMemory = evidence.counted && ended
		for _, k := range kills {
			if k.PID == x.ID.PID && !k.Time.Before(evidence.began.Add(-oomSlack)) && !k.Time.After(x.Time.Add(oomSlack)) {
				x.OutOfMemory = true
			}
		}
	}
}

// forget drops what is known of a process.
func (o *oomWatch) forget(id model.ProcessID) { delete(o.exited, id) }
