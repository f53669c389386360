package metric

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Processes is the table of what is shown about a process, over all its devices: the
// columns of smi and top, the fields of top's filter, the table of the page.
func Processes() []Process { return processTable() }

var processTable = sync.OnceValue(func() []Process { return slices.Concat(who(), holds(), works(), onHost()) })

// ProcessNamed is a field of processes by its name, or another name for it; nil: there
// is none.
func ProcessNamed(name string) *Process {
	list := Processes()
	for i := range list {
		if f := &list[i]; f.Name == name || slices.ContainsFunc(f.Synonyms, func(s Synonym) bool { return s.Name == name }) {
			return f
		}
	}
	return nil
}

func who() []Process {
	return []Process{
		{
			Name: "pid", Kind: Gauge, Head: "PID", Width: 7, Rank: 1, Help: "process id", JSON: "pid",
			Get: func(_ *model.Snapshot, p *model.Process) Value {
				if p.State == model.Hidden {
					return Value{None: true}
				}
				return count(p.PID)
			},
		},
		{
			Name: "name", Title: "Name", Head: "Name", Width: 15, Help: "name of the process", JSON: "name",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, text(p.Name)) },
		},
		{
			Name: "user", Title: "User", Head: "User", Width: 8, Rank: 3, Help: "owner", JSON: "user",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, text(p.User)) },
		},
		{
			Name: "device", Head: "Dev", Width: 7, Rank: 2, Help: "devices it uses", Synonyms: same("dev", "gpu", "chip"),
			Get: func(_ *model.Snapshot, p *model.Process) Value { return devicesOf(p) },
		},
	}
}

// devicesOf lists the devices of a process: "0-7,12".
func devicesOf(p *model.Process) Value {
	var list []int
	for i := range p.Devices {
		if d := p.Devices[i].Device; d != model.NoDevice {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return Value{None: true, Why: "its chips belong to no device of this host"}
	}
	v := str(strings.ReplaceAll(words.Ranges(list), ", ", ","))
	v.List, v.Short = list, words.Count(len(list), "dev")
	return v
}

// holds has what a process holds of its devices.
func holds() []Process {
	var list []Process
	for _, pool := range model.Pools() {
		list = append(list, Process{
			Name: pool.String(), Kind: Gauge, Unit: "MiB", Per: mib, Head: words.PoolName(pool), Width: words.FigureWidth,
			Rank: map[model.Pool]int{model.DRAM: 1, model.L1: 4, model.Trace: 10, model.CB: 11}[pool], Sparse: pool != model.DRAM && pool != model.L1, OfDevice: true,
			Help: "allocated in " + words.PoolName(pool),
			Get: func(_ *model.Snapshot, p *model.Process) Value {
				return living(p, untracked(p.Tracking(), figure(p.Held(pool))))
			},
		})
	}
	return append(list, Process{
		Name: "share", Kind: Gauge, Unit: "%", Per: 0.01, Head: "DRAM%", Width: 6, Rank: 12, OfDevice: true, Help: "share of its devices' DRAM, in percent",
		Get: func(s *model.Snapshot, p *model.Process) Value {
			held := figure(p.Held(model.DRAM))
			room := roomOf(s, p)
			if !held.Known() || room == 0 {
				return Value{None: true}
			}
			held.Num /= float64(room)
			return held
		},
	})
}

// roomOf is how much DRAM the devices of a process have together; 0 where that of
// one is not known.
func roomOf(s *model.Snapshot, p *model.Process) (sum uint64) {
	for _, index := range devicesOf(p).List {
		d := s.Device(index)
		if d == nil || !d.Memory.Pools[model.DRAM].Total.Known() {
			return 0
		}
		sum += d.Memory.Pools[model.DRAM].Total.V
	}
	return sum
}

// works has what a process has its devices do.
func works() []Process {
	return []Process{{
		Name: "busy", Kind: Gauge, Rate: true, Unit: "%", Per: 0.01, Head: "Busy", Width: 6, Rank: 7, OfDevice: true,
		Help: "share of the time in which one of its programs ran, on the busiest of its chips, in percent",
		Get: func(_ *model.Snapshot, p *model.Process) Value {
			c := p.Work.Busiest()
			if c == nil {
				return Value{None: true}
			}
			v := busy(&c.Work, c.Work.Busy, c.Work.Bound)
			v.Text, v.Why = words.Busy(&c.Work), words.WorkCause(c.Work.Cause)
			return v
		},
	}}
}

// onHost has what a process is to its host.
func onHost() []Process {
	plain := func(name, title, head, help string, width, rank int, get func(*model.Process) string) Process {
		return Process{Name: name, Title: title, Head: head, Help: help, Width: width, Rank: rank, Get: func(_ *model.Snapshot, p *model.Process) Value {
			if text := get(p); text != "" {
				return str(text)
			}
			return Value{None: true}
		}}
	}
	return []Process{
		{
			Name: "cpu", Title: "CPU", Kind: Gauge, Rate: true, Unit: "%", Decimals: 1, As: Load, Head: "CPU", Width: 6, Rank: 6,
			Help: "share of one core; needs a second sample", JSON: "cpu_percent",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, num(p.CPU)) },
		},
		{
			Name: "rss", Title: "Host Memory", Kind: Gauge, Unit: "MiB", Per: mib, Head: "RSS", Width: words.FigureWidth, Rank: 9,
			Help: "memory of the host it occupies", JSON: "rss_bytes", Synonyms: same("mem"),
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, num(p.RSS)) },
		},
		{
			Name: "threads", Title: "Threads", Kind: Gauge, Head: "Thr", Width: 4, Help: "number of threads", JSON: "threads",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, num(p.Threads)) },
		},
		{
			Name: "time", Title: "Running for", Kind: Gauge, Unit: "s", As: Lasted, Head: "Time", Width: words.DurationWidth, Rank: 5, Help: "how long it has been running",
			Get: func(s *model.Snapshot, p *model.Process) Value {
				if p.StartTime.IsZero() {
					return Value{None: true}
				}
				return num(model.Value(max(0, s.Time.Sub(p.StartTime).Seconds())))
			},
		},
		plain("job", "Belongs to", "Job", "batch job, pod, container or unit", 20, 8, func(p *model.Process) string { return strings.TrimPrefix(words.Job(p), words.Nothing) }),
		plain("container", "Container", "Container", "container it runs in", 14, 0, func(p *model.Process) string { return p.Container.ID }),
		plain("runtime", "Container Runtime", "Runtime", "docker, containerd, cri-o, podman, …", 10, 0, func(p *model.Process) string { return p.Container.Runtime }),
		plain("step", "Slurm Step", "Step", "step of the Slurm job", 8, 0, func(p *model.Process) string { return p.SlurmStep }),
		plain("unit", "Unit", "Unit", "systemd unit", 20, 0, func(p *model.Process) string { return p.SystemdUnit }),
		plain("pod", "Pod", "Pod", "Kubernetes pod", 20, 0, podOf),
		{
			Name: "fds", Kind: Gauge, Head: "FDs", Width: 4, Help: "open descriptors of devices",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return descriptors(p) },
		},
		{
			Name: "start", Title: "Started", Kind: Gauge, As: Date, Head: "Started", Width: 12, Help: "when it was started",
			Get: func(_ *model.Snapshot, p *model.Process) Value {
				if p.StartTime.IsZero() {
					return Value{None: true}
				}
				return num(model.Value(float64(p.StartTime.Unix())))
			},
		},
		{
			Name: "uid", Title: "UID", Kind: Gauge, Head: "UID", Width: 6, Help: "number of the owner", JSON: "uid",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, num(p.UID)) },
		},
		{
			Name: "ppid", Title: "Parent", Kind: Gauge, Head: "PPID", Width: 7, Help: "parent",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return count(p.PPID) },
		},
		{
			Name: "state", Head: "State", Width: 8, Help: "running, exited (another process inherited its descriptor) or hidden", JSON: "state",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return str(string(p.State)) },
		},
		{
			Name: "condition", Title: "Condition", Head: "Condition", Width: 10, Help: "compiling, stopped, zombie, or stuck where it may be", JSON: "condition",
			Get: func(_ *model.Snapshot, p *model.Process) Value {
				if p.Condition == "" {
					return Value{None: true}
				}
				v := str(words.Condition(p))
				v.Short = string(p.Condition)
				return v
			},
		},
		plain("status", "", "Status", "Device open, or Connected: it reports, and has no device open", 11, 0, statusOf),
		plain("source", "", "Source", "where its memory figures come from", 7, 0, sourcesOf),
		{
			Name: "release", Title: "Release", Head: "Release", Width: 10, Help: "tt-metal or ttnn release that it runs", JSON: "release",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, text(p.Release)) },
		},
		{
			Name: "type", Title: "Type", Head: "Type", Width: 8, Help: "what it uses its devices with: ttnn (a ttnn package), tt-metal (a C++ program, or ttnn built from its sources), other", JSON: "type",
			Get: func(_ *model.Snapshot, p *model.Process) Value { return living(p, text(p.Type)) },
		},
		{
			Name: "command", Title: "Command", Head: "Command", Rank: 1, Help: "command line", Synonyms: same("cmd", "cmdline"),
			Get: func(_ *model.Snapshot, p *model.Process) Value { return str(words.Command(p)) },
		},
	}
}

// living is what is known of a process; of one that has ended, or cannot be seen,
// there is no value.
func living(p *model.Process, v Value) Value {
	if !v.Known() && p.State != model.Running {
		v.None = true
	}
	return v
}

// podOf names a Kubernetes pod as kubectl does, or by its uid.
func podOf(p *model.Process) string {
	c := &p.Container
	name := cmp.Or(c.PodName, c.Pod)
	if name != "" && c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	return name
}

// descriptors sums the open descriptors of all devices, as far as known.
func descriptors(p *model.Process) Value {
	v := Value{None: true}
	for i := range p.Devices {
		if r := p.Devices[i].OpenFDs; r.Known() {
			v = count(int(v.Num) + r.V)
		}
	}
	return v
}

// statusOf is what the tt_smi of the prototype called a process. A script that looks for
// "Device open" finds it where a process has a device open, and nowhere else.
func statusOf(p *model.Process) string {
	for i := range p.Devices {
		if u := &p.Devices[i]; u.Device != model.NoDevice && (u.OpenFDs.V > 0 || u.OpenFDs.Status == model.Denied || u.Inherited) {
			return "Device open"
		}
	}
	return "Connected"
}

func sourcesOf(p *model.Process) string {
	var out []string
	for i := range p.Devices {
		if src := string(p.Devices[i].Source); src != "" && !slices.Contains(out, src) {
			out = append(out, src)
		}
	}
	return strings.Join(out, "+")
}

// Cell is a value in a column of the field's width.
func (f *Field[S]) Cell(v Value) string {
	switch {
	case v.None:
		return words.Nothing
	case !v.Known():
		return cmp.Or(v.Text, words.Missing(v.Status))
	case f.Kind == Text && v.Short != "" && f.Width > 0 && words.Width(v.Text) > f.Width:
		return words.Escape(v.Short)
	case v.Text != "":
		return words.Escape(v.Text)
	case f.Form() == Bytes:
		return words.BoundColumn(uint64(max(v.Num, 0)), v.Bound)
	}
	return words.Mark(v.Bound) + f.Form().Format(v.Num)
}

// Full is a value in a report: in full length, with the reason where there is none.
func (f *Field[S]) Full(v Value) string {
	switch {
	case v.Status == model.Pending && !v.None:
		return strings.TrimSuffix(words.Missing(model.Absent)+" ("+words.Escape(v.Why)+")", " ()")
	case !v.Known() && v.Why != "":
		return strings.TrimSpace(f.Cell(v)) + " (" + words.Escape(v.Why) + ")"
	case v.Known() && f.Kind == Text:
		return words.Escape(v.Text)
	case v.Known() && f.As == Date:
		return time.Unix(int64(v.Num), 0).Local().Format("2006-01-02 15:04:05")
	}
	return strings.TrimSpace(f.Cell(v))
}

// ReportProcess lists the fields that a report about a process has, with their values.
// What hardly any process has is left out where it is missing.
func ReportProcess(s *model.Snapshot, p *model.Process) (fields []*Process, values []Value) {
	list := Processes()
	for i := range list {
		f := &list[i]
		if v := f.Get(s, p); f.Title != "" && (f.Rank > 0 || !v.None) {
			fields, values = append(fields, f), append(values, v)
		}
	}
	return fields, values
}

// Right reports whether the values of a column stand at its right: all but texts do.
func (f *Field[S]) Right() bool { return f.Kind != Text && f.As != Date }

// Compare orders values for a column: numbers by size, texts by the alphabet. Values that
// are not known come last.
func Compare(a, b Value) int {
	if a.Known() != b.Known() {
		if a.Known() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Num, b.Num), slices.Compare(a.List, b.List), cmp.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text)))
}
