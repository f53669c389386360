package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// byName finds processes by their name.
func byName(s *model.Snapshot, name string) []model.Process {
	var list []model.Process
	for _, p := range s.Processes {
		if p.Name.V == name {
			list = append(list, p)
		}
	}
	return list
}

func only(t *testing.T, s *model.Snapshot, name string) model.Process {
	t.Helper()
	list := byName(s, name)
	if len(list) != 1 {
		t.Fatalf("%d processes called %s, want one of %+v", len(list), name, s.Processes)
	}
	return list[0]
}

// TestProcesses: real processes hold the nodes; descriptors are counted,
// devices told apart, and what /proc knows is there.
func TestProcesses(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150,p150a"})
	ctl(t, h, "run", "name=llama,cmd=python3 serve.py --model llama,devices=0+1,fds=2,rss=32M")
	ctl(t, h, "run", "name=train,devices=1,user=65534")
	s := smi(t, h, 0)
	p := only(t, s, "llama")
	if len(p.Devices) != 2 || p.Devices[0].Device != 0 || p.Devices[1].Device != 1 {
		t.Fatalf("devices of llama: %+v", p.Devices)
	}
	wantValue(t, "open descriptors", p.Devices[0].OpenFDs, 2)
	wantValue(t, "command line", p.Cmdline, "python3 serve.py --model llama")
	wantValue(t, "uid", p.UID, 0)
	if p.RSS.V < 32<<20 || p.StartTime.IsZero() || p.Threads.V < 1 || p.State != model.Running {
		t.Errorf("llama: %+v", p)
	}
	q := only(t, s, "train")
	wantValue(t, "uid of train", q.UID, 65534)
	if len(s.Processes) != 2 {
		t.Errorf("%d processes, want 2: %+v", len(s.Processes), s.Processes)
	}
}

// TestProcessOfNobody: the driver's list is for everybody to read.
func TestProcessOfNobody(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=llama,devices=0")
	r := asNobody(t, h, "smi", "--query-apps=pid,process_name,user", "--format=csv,noheader")
	if r.code != 0 || !strings.Contains(r.out, "llama, root") {
		t.Errorf("as nobody: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// asNobody runs ttmon inside the host as a user without any right.
func asNobody(t *testing.T, h *sim.Host, args ...string) result {
	t.Helper()
	hermetic.NeedOtherUsers(t)
	return runProgram(t, h, "setpriv", append([]string{
		"--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", filepath.Join(bin, "ttmon"),
	}, args...)...)
}

// TestExitedOpener: the driver names the process that opened the node; the
// descriptor lives on in a child. Both are told apart.
func TestExitedOpener(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=forker,devices=0,orphan")
	s := smi(t, h, 0)
	inherited := false
	for _, p := range s.Processes {
		for _, u := range p.Devices {
			inherited = inherited || p.State == model.Running && u.Inherited
		}
	}
	if !inherited {
		t.Errorf("who inherited the descriptor is not said: %+v", s.Processes)
	}
}

// TestStaleOpener: a number in the list that belongs to no process.
func TestStaleOpener(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "opener", "0", "stale")
	s := smi(t, h, 0)
	if len(s.Processes) != 1 || s.Processes[0].State != model.Exited {
		t.Errorf("want one exited opener, got %+v", s.Processes)
	}
}

// TestHiddenProcess: seen from another pid namespace the driver prints 0.
func TestHiddenProcess(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=llama,devices=0,fds=2")
	// A fresh /proc lacks the simulated driver's part, so that is carried over.
	r := runProgram(t, h, "unshare", "--pid", "--fork", "--mount", "sh", "-c",
		`mount --rbind /proc/driver "$1" && mount -t proc proc /proc && mount --rbind "$1" /proc/driver && exec "$2" smi --json`,
		"sh", t.TempDir(), filepath.Join(bin, "ttmon"))
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	s, err := wire.Decode([]byte(r.out))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Processes) != 1 || s.Processes[0].State != model.Hidden {
		t.Errorf("the hidden process is not marked: %+v", s.Processes)
	}
	if d := device(t, s, 0); d.HiddenFDs != 2 {
		t.Errorf("%d hidden descriptors, want 2", d.HiddenFDs)
	}
}

// TestChildOfALivingOpener: it shares its parent's descriptor, and has nothing
// to do with an opener that has exited.
func TestChildOfALivingOpener(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=parent,devices=0,forks=1")
	ctl(t, h, "run", "name=orphan,devices=0,orphan")
	inheritors := 0
	for _, p := range smi(t, h, 0).Processes {
		if p.Devices[0].Inherited {
			inheritors++
			if p.Name.V != "orphan" {
				t.Errorf("%q is said to have inherited: %+v", p.Name.V, p.Devices)
			}
		}
	}
	if inheritors != 1 {
		t.Errorf("%d inheritors, want 1", inheritors)
	}
}

// TestForeignProc: in a pid namespace that still has the host's /proc, the
// processes behind the driver's zeros are seen, and nothing is hidden.
func TestForeignProc(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=llama,devices=0,fds=2")
	r := runProgram(t, h, "unshare", "--pid", "--fork", filepath.Join(bin, "ttmon"), "smi", "--json")
	s, err := wire.Decode([]byte(r.out))
	if r.code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", r.code, err, r.err)
	}
	only(t, s, "llama")
	if d := device(t, s, 0); d.HiddenFDs != 0 {
		t.Errorf("%d descriptors are called hidden", d.HiddenFDs)
	}
}

// TestOldDriverInAContainer: without a list, and with a /proc that shows
// no process, the module still says that it is in use.
func TestOldDriverInAContainer(t *testing.T) {
	for boards, where := range map[string]func(s *model.Snapshot) int{
		"n150":       func(s *model.Snapshot) int { return s.Devices[0].HiddenFDs },
		"n150,p150a": func(s *model.Snapshot) int { return s.Host.HiddenFDs },
	} {
		t.Run(boards, func(t *testing.T) {
			h := start(t, sim.Options{Boards: boards, Driver: "2.4.0"})
			ctl(t, h, "run", "name=llama,devices=0,fds=2")
			for _, how := range []string{"--json", "-c"} {
				r := runProgram(t, h, "unshare", "--pid", "--fork", "--mount", "sh", "-c",
					`mount -t proc proc /proc && exec "$1" smi "$2"`, "sh", filepath.Join(bin, "ttmon"), how)
				if r.code != 0 {
					t.Fatalf("exit code %d: %s", r.code, r.err)
				}
				if how == "-c" {
					if !strings.Contains(r.out, "open 2 times") || strings.Contains(r.out, "no process uses") {
						t.Errorf("the table says\n%s", r.out)
					}
					continue
				}
				s, err := wire.Decode([]byte(r.out))
				if err != nil {
					t.Fatal(err)
				}
				if n := where(s); n != 2 {
					t.Errorf("%d hidden descriptors, want 2", n)
				}
			}
		})
	}
}

// TestOldDriverProcesses: before 2.5 there is no list; /proc/*/fd is scanned.
func TestOldDriverProcesses(t *testing.T) {
	for _, version := range []string{"1.34", "2.4.0", "2.6.0", "2.7.0"} {
		t.Run(version, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150,p150a", Driver: version})
			ctl(t, h, "run", "name=llama,devices=1,fds=3")
			s := smi(t, h, 0)
			p := only(t, s, "llama")
			if len(p.Devices) != 1 || p.Devices[0].Device != 1 {
				t.Fatalf("devices: %+v", p.Devices)
			}
			wantValue(t, "open descriptors", p.Devices[0].OpenFDs, 3)
			wantValue(t, "driver", s.Host.DriverVersion, version)
		})
	}
}

// TestContainerPIDs: drivers 2.5 and 2.6 print the opener's own number, which
// on the host belongs to another process.
func TestContainerPIDs(t *testing.T) {
	for version, why := range map[string]string{"2.6.0": "the opener's number", "2.10.0": "the reader's number"} {
		t.Run(version, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150", Driver: version})
			ctl(t, h, "run", "name=boxed,devices=0,pidns")
			s := smi(t, h, 0)
			p := only(t, s, "boxed")
			if p.State != model.Running || p.PID < 2 {
				t.Errorf("%s: %+v", why, p)
			}
			for _, q := range s.Processes {
				if q.PID == 1 {
					t.Errorf("%s was blamed on the host's init", why)
				}
			}
		})
	}
}

// TestHostileNames: what a process calls itself never reaches the terminal raw.
func TestHostileNames(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=evil\x1b[31m,cmd=evil \x1b]0;pwned\x07 \u202egnp.exe,devices=0")
	for _, args := range [][]string{{"smi"}, {"smi", "-q"}, {"smi", "pmon", "-c", "1"}, {"smi", "--query-apps=process_name,cmdline", "--format=csv"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			r := runIn(t, h, args...)
			for _, raw := range []string{"\x1b", "\x07", "\u202e"} {
				if strings.Contains(r.out, raw) {
					t.Errorf("%v shows a raw %q:\n%q", args, raw, r.out)
				}
			}
			if !strings.Contains(r.out, "evil") {
				t.Errorf("%v does not show the process:\n%s", args, r.out)
			}
		})
	}
	if p := only(t, smi(t, h, 0), "evil\x1b[31m"); p.PID == 0 {
		t.Error("the JSON lost the name")
	}
}

// TestManyProcesses: more than any other tool shows.
func TestManyProcesses(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=worker,devices=0,count=40")
	s := smi(t, h, 0)
	if n := len(byName(s, "worker")); n != 40 {
		t.Errorf("%d workers, want 40", n)
	}
	r := runIn(t, h, "smi", "--query-apps=pid", "--format=csv,noheader")
	if n := strings.Count(r.out, "\n"); n != 40 {
		t.Errorf("--query-apps shows %d of 40:\n%s", n, r.out)
	}
}
