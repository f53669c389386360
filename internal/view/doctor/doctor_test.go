package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/view/doctor"
)

// well is a host on which there is nothing to say but that it is well.
func well() *doctor.Subject {
	s := &doctor.Subject{
		Snapshot: sample.Four(), Root: true, Version: "1",
		Daemon: doctor.DaemonState{Answers: true, Path: "/run/s", Version: "1", Watch: apitype.WatchOn},
		Setup: &model.Setup{
			HugePages: model.Value(0), Regions: model.Value(1), ShmFree: model.Value[uint64](1 << 30), ShmTotal: model.Value[uint64](2 << 30),
			Kernel: "6.12.1", BTF: true,
		},
	}
	s.Snapshot.StaleSlots, s.Snapshot.Processes = nil, nil
	for i := range s.Snapshot.Devices {
		d := &s.Snapshot.Devices[i]
		d.State, d.StateReason = model.StateOK, model.StateReason{}
		d.PCIe.Degraded = model.Value(false)
		d.Doubts, d.Memory.Doubts = nil, nil
		d.Firmware.Bundle = model.Value("19.4.0.0")
		s.Setup.Nodes = append(s.Setup.Nodes, model.Node{Index: d.Index, Mode: 0o666, Usable: true})
		s.Setup.Functions = append(s.Setup.Functions, model.Function{BusID: d.BusID, IOMMU: model.Value(model.Translated)})
	}
	return s
}

func TestExamine(t *testing.T) {
	untranslated := func(s *doctor.Subject) {
		for i := range s.Setup.Functions {
			s.Setup.Functions[i].IOMMU = model.Value(model.NoIOMMU)
		}
	}
	for name, c := range map[string]struct {
		change func(*doctor.Subject)
		code   string // what must be found; empty: nothing but what is well
		exit   int
	}{
		"well":                {func(*doctor.Subject) {}, "", 0},
		"no driver, no board": {func(s *doctor.Subject) { s.Snapshot = sample.None(); s.Snapshot.Host.DriverLoaded = false }, "no_board", 3},
		"no board":            {func(s *doctor.Subject) { s.Snapshot = sample.None(); s.Snapshot.Host.DriverLoaded = true }, "no_board", 3},
		"no driver": {func(s *doctor.Subject) {
			s.Snapshot = sample.None()
			s.Snapshot.Host.DriverLoaded, s.Snapshot.Host.Unbound = false, []string{"0000:01:00.0"}
		}, "driver_absent", 2},
		"not taken":     {func(s *doctor.Subject) { s.Snapshot.Host.Unbound = []string{"0000:05:00.0"} }, "unbound", 2},
		"old driver":    {func(s *doctor.Subject) { s.Snapshot.Host.DriverVersion = model.Value("2.4.0") }, "driver_old", 1},
		"unsafe driver": {func(s *doctor.Subject) { s.Snapshot.Host.DriverVersion = model.Value("2.6.0") }, "driver_removal", 1},
		"older driver":  {func(s *doctor.Subject) { s.Snapshot.Host.DriverVersion = model.Value("1.34") }, "driver_removal", 1},
		"safe driver":   {func(s *doctor.Subject) { s.Snapshot.Host.DriverVersion = model.Value("2.7.0-rc1") }, "driver_old", 0},
		"odd driver":    {func(s *doctor.Subject) { s.Snapshot.Host.DriverVersion = model.Value("x") }, "", 0},
		"unsafe, unused": {func(s *doctor.Subject) {
			s.Snapshot = sample.None()
			s.Snapshot.Host.DriverLoaded, s.Snapshot.Host.DriverVersion = true, model.Value("2.6.0")
		}, "no_board", 3},
		"hung":           {func(s *doctor.Subject) { sample.Hang(&s.Snapshot.Devices[1]) }, "hung", 2},
		"lost":           {func(s *doctor.Subject) { sample.Lose(&s.Snapshot.Devices[1]) }, "lost", 2},
		"slow link":      {func(s *doctor.Subject) { s.Snapshot.Devices[2].PCIe.Degraded = model.Value(true) }, "slow_link", 1},
		"PCIe errors":    {func(s *doctor.Subject) { s.Setup.Functions[0].FatalErrors = model.Value[uint64](1) }, "pcie_errors", 1},
		"mixed firmware": {func(s *doctor.Subject) { s.Snapshot.Devices[1].Firmware.Bundle = model.Value("18.1.0.0") }, "firmware", 0},
		"no firmware": {func(s *doctor.Subject) {
			s.Snapshot.Devices[0].Firmware.Bundle = model.Missing[string](model.Absent, "")
		}, "firmware_silent", 0},
		"no nodes":       {func(s *doctor.Subject) { s.Setup.Nodes = nil }, "nodes_absent", 1},
		"shut nodes":     {func(s *doctor.Subject) { s.Setup.Nodes[0].Usable = false }, "nodes_denied", 1},
		"narrow nodes":   {func(s *doctor.Subject) { s.Setup.Nodes[0].Mode = 0o600 }, "nodes_narrow", 0},
		"no huge pages":  {untranslated, "hugepages_few", 1},
		"not mounted":    {func(s *doctor.Subject) { untranslated(s); s.Setup.HugePages = model.Value(16) }, "hugepages_unmounted", 1},
		"no 1 GiB pages": {func(s *doctor.Subject) { untranslated(s); s.Setup.HugePages = model.Reading[int]{} }, "hugepages_unsupported", 1},
		"huge pages": {func(s *doctor.Subject) {
			untranslated(s)
			s.Setup.HugePages, s.Setup.HugeMount = model.Value(16), "/dev/hugepages-1G"
		}, "", 0},
		"shm full":                 {func(s *doctor.Subject) { s.Setup.ShmFree = model.Value[uint64](1) }, "shm_full", 1},
		"shm unreadable":           {func(s *doctor.Subject) { s.Setup.Regions = model.Missing[int](model.Denied, "") }, "shm_unreadable", 1},
		"stale":                    {func(s *doctor.Subject) { s.Snapshot.StaleSlots = sample.Troubles().StaleSlots }, "stale", 0},
		"no ttmond":                {func(s *doctor.Subject) { s.Daemon = doctor.DaemonState{} }, "ttmond_absent", 0},
		"silent ttmond":            {func(s *doctor.Subject) { s.Daemon = doctor.DaemonState{Why: "x\x1b"} }, "ttmond_silent", 1},
		"late ttmond":              {func(s *doctor.Subject) { s.Daemon.Problems = []string{"loop: late"} }, "ttmond_problem", 2},
		"another ttmond":           {func(s *doctor.Subject) { s.Daemon.Version = "2" }, "ttmond_version", 0},
		"uprobes off":              {func(s *doctor.Subject) { s.Daemon.Watch = apitype.WatchOff }, "uprobes_off", 0},
		"uprobes refused":          {func(s *doctor.Subject) { s.Daemon.Watch, s.Daemon.Reason = apitype.WatchUnavailable, "why" }, "uprobes_unavailable", 0},
		"uprobes starting":         {func(s *doctor.Subject) { s.Daemon.Watch = apitype.WatchStarting }, "", 0},
		"uprobes failed":           {func(s *doctor.Subject) { s.Daemon.Watch, s.Daemon.Reason = apitype.WatchFailed, "why" }, "uprobes_failed", 1},
		"old kernel":               {func(s *doctor.Subject) { s.Daemon = doctor.DaemonState{}; s.Setup.Kernel = "6.1.0" }, "uprobes_impossible", 0},
		"counted":                  {func(s *doctor.Subject) { s.Snapshot.Processes = sample.Four().Processes }, "memory_counted", 0},
		"container":                {func(s *doctor.Subject) { s.Setup.Container = "/.dockerenv" }, "container", 0},
		"mount without its mounts": {func(s *doctor.Subject) { s.Setup.Mount = &model.HostMount{Dir: "/host"} }, "mount_partial", 1},
		"mount without /dev/shm":   {func(s *doctor.Subject) { s.Setup.Mount = &model.HostMount{Dir: "/host", Proc: true} }, "mount_shm", 1},
		"pids of its own": {func(s *doctor.Subject) {
			s.Setup.Mount = &model.HostMount{Dir: "/host", Proc: true, Shm: true, SamePIDs: model.Value(false)}
		}, "pid_namespace", 1},
		"without capabilities": {func(s *doctor.Subject) {
			s.Setup.Mount = &model.HostMount{Dir: "/host", Proc: true, Shm: true, SamePIDs: model.Value(true), Lacking: []string{"CAP_BPF"}}
		}, "capabilities", 0},
		"a good container": {func(s *doctor.Subject) {
			s.Setup.Container = "/.dockerenv"
			s.Setup.Mount = &model.HostMount{Dir: "/host", Proc: true, Shm: true, SamePIDs: model.Value(true)}
		}, "", 0},
		"not root": {func(s *doctor.Subject) { s.Root, s.Daemon = false, doctor.DaemonState{} }, "not_root", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := well()
			c.change(s)
			r := doctor.Examine(s)
			if r.ExitCode() != c.exit {
				t.Errorf("exit code %d, want %d: %+v", r.ExitCode(), c.exit, r.Findings)
			}
			if c.code != "" && !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Code == c.code }) {
				t.Errorf("no %s in %+v", c.code, r.Findings)
			}
			for _, f := range r.Findings {
				if c.code == "" && f.Level != doctor.OK {
					t.Errorf("%+v", f)
				}
				if rank := f.Level == doctor.Warning || f.Level == doctor.Critical; rank && f.Do == "" {
					t.Errorf("%s says not what to do: %s", f.Code, f.Text)
				}
				if strings.ContainsAny(f.Text+f.Do, "\x1b\n") {
					t.Errorf("not safe for a terminal: %q", f.Text)
				}
			}
		})
	}
}
