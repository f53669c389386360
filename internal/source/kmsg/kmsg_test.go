package kmsg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmsg"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

var boot = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)

const device = "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n"

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, record string
		want         *model.LogLine
	}{
		{"firmware", "4,10,1000000,-;tenstorrent 0000:01:00.0: SMC: board power 310 W" + device, &model.LogLine{Sequence: 10, Time: boot.Add(time.Second), Level: 4, From: model.LogSMC, BusID: "0000:01:00.0", Text: "board power 310 W"}},
		{"board controller", "6,11,0,-;tenstorrent 0000:01:00.0: DMC: fan on" + device, &model.LogLine{Sequence: 11, Time: boot, Level: 6, From: model.LogDMC, BusID: "0000:01:00.0", Text: "fan on"}},
		{"driver about a device", "3,12,0,-;tenstorrent 0000:01:00.0: telemetry not available" + device, &model.LogLine{Sequence: 12, Time: boot, Level: 3, From: model.LogDriver, BusID: "0000:01:00.0", Text: "telemetry not available"}},
		{"driver", "6,13,0,-;tenstorrent: loading out-of-tree module\n", &model.LogLine{Sequence: 13, Time: boot, Level: 6, From: model.LogDriver, Text: "loading out-of-tree module"}},
		{"another driver", "6,14,0,-;nvme 0000:01:00.0: reset\n", nil},
		{"a user's own record", "12,15,0,-;tenstorrent: chip on fire\n", nil},
		{"a program with the driver's name", "6,16,0,-;tenstorrent: x[4242]: segfault at 0 ip 0\n", nil},
		{"a program with a device's name", "6,17,0,-;tenstorrent a: [4242]: segfault\n", nil},
		{"a device without the kernel's word", "6,18,0,-;tenstorrent 0000:01:00.0: SMC: all is well\n", nil},
		{"the kernel's word for another device", "6,19,0,-;tenstorrent 0000:02:00.0: SMC: all is well" + device, nil},
		{"escapes", `4,20,0,-;tenstorrent: \x07red` + "\n", &model.LogLine{Sequence: 20, Time: boot, Level: 4, From: model.LogDriver, Text: "\x07red"}},
		{"colours", `4,21,0,-;tenstorrent 0000:01:00.0: \x1b[0mSMC: \x1b[1;33m<wrn> fan\x1b[0m` + device, &model.LogLine{Sequence: 21, Time: boot, Level: 4, From: model.LogSMC, BusID: "0000:01:00.0", Text: "<wrn> fan"}},
		{"half a colour", `4,22,0,-;tenstorrent: red\x1b[3` + "\n", &model.LogLine{Sequence: 22, Time: boot, Level: 4, From: model.LogDriver, Text: "red"}},
		{"no record", "tenstorrent: x\n", nil},
		{"numbers that are none", "4,-1,0,-;tenstorrent: x\n", nil},
		{"a time that cannot be", "4,1,99999999999999999999,-;tenstorrent: x\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := kmsg.Parse([]byte(tt.record), boot)
			if ok != (tt.want != nil) {
				t.Fatalf("ok %v, %+v", ok, got)
			}
			if ok {
				if diff := cmp.Diff(*tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Lines of Linux 6.1 and 6.18.
func TestParseOOMKill(t *testing.T) {
	for _, tt := range []struct {
		name, record string
		pid          int // 0: none
	}{
		{"host", "3,900,2000000,-;Out of memory: Killed process 4711 (python3) total-vm:8409600kB, anon-rss:7921120kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:15620kB oom_score_adj:0\n", 4711},
		{"control group", "3,901,2000000,-;Memory cgroup out of memory: Killed process 12 (a) b) total-vm:70980kB\n", 12},
		{"a user's own record", "11,902,0,-;Out of memory: Killed process 4711 (python3)\n", 0},
		{"another line of it", "6,903,0,-;oom_reaper: reaped process 4711 (python3), now anon-rss:0kB\n", 0},
		{"a program of that name", "6,904,0,-;Out of memory: [4242]: segfault at 0 ip 0\n", 0},
		{"a program named after it", "6,905,0,-;Killed process 4[17]: segfault at 0\n", 0},
		{"no number", "3,906,0,-;Out of memory: Killed process x (python3)\n", 0},
		{"a number that is none", "3,907,0,-;Out of memory: Killed process 99999999999999999999 (python3)\n", 0},
		{"negative", "3,908,0,-;Out of memory: Killed process -4 (python3)\n", 0},
		{"no record", "Out of memory: Killed process 4 (x)\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, ok := kmsg.ParseOOMKill([]byte(tt.record), boot)
			if ok != (tt.pid != 0) || ok && k.PID != tt.pid || ok && k.Time != boot.Add(2*time.Second) {
				t.Errorf("%+v, %v", k, ok)
			}
		})
	}
}

func TestOOMKills(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := kmsg.New(hostfs.At(root))
	if list, known := r.OOMKills(); known || len(list) != 0 {
		t.Errorf("without a log: %v, %v", list, known)
	}
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "3,%d,%d,-;Out of memory: Killed process %d (x) total-vm:1kB\n", i, i, i+1)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/kmsg"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r = kmsg.New(hostfs.At(root))
	defer r.Close()
	list, known := r.OOMKills()
	if !known || len(list) != 64 || list[0].PID != 37 || list[63].PID != 100 {
		t.Errorf("%d: %v, %v", len(list), list, known)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("4,10,1000000,-;tenstorrent 0000:01:00.0: SMC: x" + device))
	f.Add([]byte("3,900,2,-;Memory cgroup out of memory: Killed process 12 (a) total-vm:1kB\n"))
	f.Add([]byte(";;;\n\n ,,,"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := kmsg.Parse(b, boot); ok && (len(l.Text) > 500 || l.Level > 7 || len(l.BusID) > 16) {
			t.Errorf("%+v", l)
		}
		if k, ok := kmsg.ParseOOMKill(b, boot); ok && k.PID <= 0 {
			t.Errorf("%+v", k)
		}
	})
}

// What is kept is bounded, and the newest.
func TestFlood(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "dev/kmsg")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "4,%d,%d,-;tenstorrent 0000:01:00.0: SMC: line %d%s%s", i, i, i, strings.Repeat("x", 300), device)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r := kmsg.New(hostfs.At(root))
	defer r.Close()
	lines := r.Lines()
	if len(lines) != 32 || lines[31].Sequence != 2999 || lines[0].Sequence != 2968 {
		t.Fatalf("%d lines, %d to %d", len(lines), lines[0].Sequence, lines[len(lines)-1].Sequence)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "3,5000,1,-;tenstorrent 0000:01:00.0: DMC: the last%s", device)
	if lines = r.Lines(); lines[31].Text != "the last" || lines[31].From != model.LogDMC {
		t.Errorf("%+v", lines[31])
	}
}

// The clock of the log may be wrong: what was not there at the last reading was written
// after it, and before this one.
func TestClockOfTheLog(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "dev/kmsg")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		at   time.Duration // since the start of the kernel
	}{{"slow", 0}, {"fast", 1000 * time.Hour}} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			r := kmsg.New(hostfs.At(root))
			defer r.Close()
			from := time.Now()
			r.Lines()
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			fmt.Fprintf(f, "3,5000,%d,-;tenstorrent 0000:01:00.0: DMC: x%s", tt.at.Microseconds(), device)
			lines := r.Lines()
			if at := lines[len(lines)-1].Time; at.Before(from) || at.After(time.Now()) {
				t.Errorf("%v, want it between %v and now", at, from)
			}
		})
	}
}

func TestNoLog(t *testing.T) {
	r := kmsg.New(hostfs.At(t.TempDir()))
	defer r.Close()
	if l := r.Lines(); l != nil {
		t.Errorf("%v", l)
	}
}
