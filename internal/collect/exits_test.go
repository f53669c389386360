package collect

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// How processes ended that left their devices: one lives, one is gone, one
// waits for its parent, the number of one has a new owner.
func TestExits(t *testing.T) {
	dir := t.TempDir()
	for pid, state := range map[string]string{"1": "S", "3": "Z", "4": "S"} {
		start := "10"
		if pid == "4" {
			start = "99"
		}
		line := pid + " (x) " + state + " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + start + strings.Repeat(" 0", 29) + " 9\n"
		if err := os.MkdirAll(filepath.Join(dir, "proc", pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "proc", pid, "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	e := exits{root: hostfs.At(dir)}
	var list []model.Process
	for pid := 1; pid <= 4; pid++ {
		list = append(list, model.Process{PID: pid, StartTicks: 10, State: model.Running, Devices: []model.DeviceUse{{}}})
	}
	s := &model.Snapshot{Time: at, Processes: list}
	if e.add(s, nil); len(s.Exits) != 0 {
		t.Fatalf("%+v", s.Exits)
	}
	s = &model.Snapshot{Time: at}
	e.add(s, nil)
	if len(s.Exits) != 4 {
		t.Fatalf("%+v", s.Exits)
	}
	x := s.Exits
	if !x[0].Alive || x[1].Alive || x[1].Status.Known() || x[2].Status != model.Value(9) || x[3].Alive || x[3].Status.Known() {
		t.Errorf("%+v", x)
	}
	if err := os.RemoveAll(filepath.Join(dir, "proc", "1")); err != nil {
		t.Fatal(err)
	}
	s = &model.Snapshot{Time: at.Add(time.Second)}
	if e.add(s, nil); len(s.Exits) != 4 || s.Exits[0].Alive || s.Exits[0].Status.Known() {
		t.Errorf("of one that was still there when it had closed its devices: %+v", s.Exits)
	}
	s = &model.Snapshot{Time: at.Add(2 * exitsFor)}
	if e.add(s, nil); len(s.Exits) != 0 {
		t.Errorf("%+v", s.Exits)
	}
}

// The kernel reports the exit status of a process that its parent has reaped.
func TestPidfd(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read x; exit 3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	st, err := proc.ReadStat(hostfs.Root{}, cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id := model.ProcessID{PID: cmd.Process.Pid, StartTicks: st.Start}
	var p pidfds
	defer p.close()
	p.hold(model.ProcessID{PID: id.PID, StartTicks: 1}) // an earlier owner of the number
	if len(p.fds) != 0 {
		t.Error("a descriptor of another process is held")
	}
	p.hold(id)
	if status, known := p.status(id); known {
		t.Errorf("it runs, and its status is %d", status)
	}
	in.Close()
	_ = cmd.Wait()
	status, known := p.status(id)
	if !known && !kernelHas(6, 15) {
		t.Skip("needs Linux 6.15")
	}
	if !known || status != 3<<8 {
		t.Errorf("status %d, known %v", status, known)
	}
}

// kernelHas reports whether the kernel is of a version or newer.
func kernelHas(major, minor int) bool {
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return false
	}
	var a, b int
	_, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &a, &b)
	return err == nil && (a > major || a == major && b >= minor)
}

// TestTellsStatus: on a kernel that does not report the status of processes, the
// reason is that it does not.
func TestTellsStatus(t *testing.T) {
	for release, want := range map[string]bool{"5.15.0-91-generic": false, "6.8.0": false, "6.14.11": false, "6.15.0-rc1": true, "6.18.44": true, "7.0": true, "10.1-x": true, "": true, "what": true} {
		t.Run(release, func(t *testing.T) {
			if got := tellsStatus(release); got != want {
				t.Errorf("%v", got)
			}
		})
	}
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	e := exits{root: hostfs.At(t.TempDir()), silent: true}
	e.add(&model.Snapshot{Time: at, Processes: []model.Process{{PID: 7, StartTicks: 1, State: model.Running, Devices: []model.DeviceUse{{}}}}}, nil)
	s := &model.Snapshot{Time: at}
	if e.add(s, nil); len(s.Exits) != 1 || s.Exits[0].Status.Status != model.Unsupported {
		t.Errorf("%+v", s.Exits)
	}
}
