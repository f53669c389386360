package metric

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Apps is the table of what can be asked about a process on a device, in the
// order of --help-query-apps.
func Apps() []App {
	list := []App{
		{
			Name: "timestamp", Help: "when the snapshot was taken, RFC 3339, UTC", JSON: "/time",
			Get: func(s *model.Snapshot, _ Use) Value { return instant(s.Time) },
		},
		ofDevice("device_index", "N of /dev/tenstorrent/N", func(d *model.Device) Value { return str(strconv.Itoa(d.Index)) }, "gpu_index"),
		ofDevice("device_name", "board and architecture", func(d *model.Device) Value {
			if !d.Board.Known() {
				return str(string(d.Arch))
			}
			return str(d.Board.V + " " + string(d.Arch))
		}, "gpu_name"),
		ofDevice("device_bus_id", "PCI address", func(d *model.Device) Value { return str(d.BusID) }, "gpu_bus_id"),
		ofDevice("device_uuid", "id of the chip itself", func(d *model.Device) Value { return text(d.ASICID) }, "gpu_uuid"),
		ofDevice("device_serial", "serial number of the board", func(d *model.Device) Value { return text(d.Serial) }, "gpu_serial"),
		{
			Name: "pid", Kind: Gauge, Help: "process id; 0: a process that cannot be seen from here", JSON: "pid",
			Get: func(_ *model.Snapshot, u Use) Value { return count(u.Process.PID) },
		},
		via("state"),
		via("condition"),
		{
			Name: "process_name", Help: "name of the process", JSON: "name", Synonyms: same("name"),
			Get: func(_ *model.Snapshot, u Use) Value { return text(u.Process.Name) },
		},
		{
			Name: "cmdline", Help: "command line", JSON: "cmdline",
			Get: func(_ *model.Snapshot, u Use) Value { return text(u.Process.Cmdline) },
		},
		via("user"),
		via("uid"),
		{
			Name: "start_time", Help: "when it started, RFC 3339, UTC", JSON: "start_time",
			Get: func(_ *model.Snapshot, u Use) Value { return instant(u.Process.StartTime) },
		},
		named("runtime", via("time")),
		via("cpu"),
		via("rss"),
		via("threads"),
		{
			Name: "open_fds", Kind: Gauge, Help: "open descriptors of the device", JSON: "devices.[].open_fds",
			Get: func(_ *model.Snapshot, u Use) Value { return num(u.Device.OpenFDs) },
		},
		{
			Name: "inherited", Kind: Bool, Help: "holds a descriptor that it did not open itself", JSON: "devices.[].inherited",
			Get: func(_ *model.Snapshot, u Use) Value { return yes(model.Value(u.Device.Inherited)) },
		},
	}
	return slices.Concat(list, worked(), held(), where())
}

// via is a field of the process, for one of its devices. Figures are never taken over so:
// a sum over the devices would count them several times.
func via(name string) App {
	p := ProcessNamed(name)
	return App{
		Name: p.Name, Kind: p.Kind, Unit: p.Unit, Per: p.Per, Decimals: p.Decimals, Rate: p.Rate, Help: p.Help, JSON: p.JSON,
		Get: func(s *model.Snapshot, u Use) Value { return p.Get(s, u.Process) },
	}
}

// named is a field under the name that scripts know.
func named(name string, f App) App {
	f.Name = name
	return f
}

// ofDevice is a field of the device that the process uses.
func ofDevice(name, help string, get func(*model.Device) Value, synonym string) App {
	return App{Name: name, Help: help, Synonyms: same(synonym), Get: func(s *model.Snapshot, u Use) Value {
		d := s.Device(u.Device.Device)
		if d == nil {
			return Value{Why: "the chip belongs to no device of this host"}
		}
		return get(d)
	}}
}

// held has the memory of a process on a device.
func held() []App {
	list := []App{{
		Name: "memory.tracked", Help: "how far the figures can be trusted", JSON: "devices.[].tracking",
		Get: func(_ *model.Snapshot, u Use) Value {
			if u.Device.Tracking == "" {
				return str(string(model.TrackAbsent))
			}
			return str(string(u.Device.Tracking))
		},
	}}
	for _, p := range model.Pools() {
		f := App{
			Name: "used_" + p.String(), Kind: Gauge, Unit: "MiB", Per: mib,
			Help: "allocated in " + strings.ToUpper(p.String()), JSON: "devices.[]." + p.String() + "_bytes",
			Prom: gauge("process_memory_used_bytes").with(`pool="`+p.String()+`"`, 0),
			Get:  func(_ *model.Snapshot, u Use) Value { return untracked(u.Device.Tracking, figure(u.Device.Memory[p])) },
		}
		if p == model.DRAM {
			f.Name, f.Synonyms = "used_memory", same("used_gpu_memory", "used_dram")
		}
		list = append(list, f, App{
			Name: f.Name + ".bound", Help: boundHelp + f.Name, JSON: "devices.[]." + p.String() + "_bound",
			Get: func(_ *model.Snapshot, u Use) Value { return untracked(u.Device.Tracking, bound(u.Device.Memory[p])) },
		})
	}
	return append(list,
		App{
			Name: "memory.source", Help: "where the figures come from", JSON: "devices.[].source",
			Get: func(_ *model.Snapshot, u Use) Value { return str(string(u.Device.Source)) },
		},
		App{
			Name: "memory.doubts", Help: "kinds of what the figures leave out",
			Get: func(_ *model.Snapshot, u Use) Value { return kinds(u.Device.Doubts, u.Process.Doubts) },
		},
		App{
			Name: "memory.note", Help: "what the figures leave out, as sentences",
			Get: func(_ *model.Snapshot, u Use) Value { return sentences(words.OwnDoubts(u.Process, u.Device)) },
		},
	)
}

// where says to whom a process belongs.
func where() []App {
	plain := func(name, help, json string, get func(*model.Process) string) App {
		return App{Name: name, Help: help, JSON: json, Get: func(_ *model.Snapshot, u Use) Value { return str(get(u.Process)) }}
	}
	return []App{
		plain("container.runtime", "docker, containerd, cri-o, podman, …", "container.runtime", func(p *model.Process) string { return p.Container.Runtime }),
		plain("container.id", "id of its container", "container.id", func(p *model.Process) string { return p.Container.ID }),
		plain("pod.uid", "uid of its Kubernetes pod", "container.pod", func(p *model.Process) string { return p.Container.Pod }),
		plain("pod.name", "name of its Kubernetes pod", "container.pod_name", func(p *model.Process) string { return p.Container.PodName }),
		plain("pod.namespace", "Kubernetes namespace", "container.namespace", func(p *model.Process) string { return p.Container.Namespace }),
		plain("slurm.job_id", "Slurm job", "slurm_job", func(p *model.Process) string { return p.SlurmJob }),
		plain("slurm.step_id", "step of the Slurm job", "slurm_step", func(p *model.Process) string { return p.SlurmStep }),
		plain("systemd.unit", "systemd unit", "systemd_unit", func(p *model.Process) string { return p.SystemdUnit }),
		via("type"),
		via("release"),
	}
}
