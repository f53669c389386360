package proc

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

func TestParseStatus(t *testing.T) {
	got := parseStatus([]byte("Name:\tpython3\nTgid:\t4242\nNgid:\t0\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4242\t17\t1\nNSpgid:\t9\nVmSize:\t 9 kB\n"))
	want := Status{TGID: 4242, UID: 1001, UIDs: []int{1000, 1001, 1002, 1003}, NSPIDs: []int{4242, 17, 1}, Memory: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := parseStatus([]byte("Uid:\t1\nTgid\nNSpid:\t-1\tx\n")); got.UID != -1 || got.TGID != 0 || got.NSPIDs != nil || got.Memory || got.Inner(9) != 9 {
		t.Errorf("broken lines were parsed as %+v", got)
	}
}

func TestFindUser(t *testing.T) {
	const passwd = "# comment:x:1000:\nroot:x:0:0:root:/root:/bin/sh\n+nis:x:1000:\n:x:1000:\nbroken\nalice:x:1000:1000::/h:/s\nbob:x:1000:\nlast:x:7"
	for uid, want := range map[int]string{0: "root", 1000: "alice", 7: "", 100: ""} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if name, _, ok := findUser([]byte(passwd), uid); name != want || ok != (want != "") {
				t.Errorf("user %d: %q, %v; want %q", uid, name, ok, want)
			}
		})
	}
}

func TestCPUMeter(t *testing.T) {
	begin := time.Now()
	pending := model.Missing[float64](model.Pending, "needs two samples")
	backwards := model.Missing[float64](model.Pending, "the CPU time went backwards; needs a new sample")
	var m cpuMeter
	for _, step := range []struct {
		ticks uint64
		after time.Duration
		want  model.Reading[float64]
	}{
		{1000, 0, pending},
		{1001, 50 * time.Millisecond, pending}, // too soon to tell
		{1050, time.Second, model.Value(50.0)},
		{1051, time.Second + 20*time.Millisecond, model.Value(50.0)}, // the last share again
		{1450, 2 * time.Second, model.Value(400.0)},
		{1450, 4 * time.Second, model.Value(0.0)},
		{1440, 5 * time.Second, backwards},
		{1540, 6 * time.Second, model.Value(100.0)},
	} {
		if got := m.update(step.ticks, begin.Add(step.after)); got != step.want {
			t.Errorf("after %v: %+v, want %+v", step.after, got, step.want)
		}
	}
}

func TestJoinArguments(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"\x00\x00":                  "",
		"python3\x00-m\x00x\x00":    "python3 -m x",
		"nginx: worker   \x00\x00 ": "nginx: worker",
		"a\x00\x00b\x00":            "a  b", // an empty argument
		"esc\x1b[2J\xff\x00":        "esc\x1b[2J\xff",
	} {
		t.Run(in, func(t *testing.T) {
			if got := joinArguments([]byte(in)); got != want {
				t.Errorf("%q: %q, want %q", in, got, want)
			}
		})
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Tgid:\t4242\nUid:\t1\t2\t3\t4\nNSpid:\t1\t2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, pid := range parseStatus(b).NSPIDs {
			if pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
	})
}
