package procfs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

const statTail = " S 1 4242 4242 34816 4242 4194304 1000 0 5 0 250 31 7 3 20 0 12 0 987654 4096000 2500 18446744073709551615 1 1 0"

func TestParseStat(t *testing.T) {
	want := stat{state: 'S', ppid: 1, flags: 4194304, cpu: 281, threads: 12, start: 987654}
	for _, name := range []string{"python3", "", "a b", ") S 1 (", "(sd-pam)", "x\ny", "tt) Z 7 7"} {
		want.comm = []byte(name)
		got, err := parseStat([]byte("4242 (" + name + ")" + statTail + "\n"))
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(stat{})); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
	for _, bad := range []string{
		"", "4242", "4242 (x", "4242 (x)", "4242 (x) S 1 2", ")(", "1 (x) S a" + statTail,
		"1 (x)" + strings.Replace(statTail, "987654", "-1", 1),
	} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken for %+v", bad, s)
		}
	}
}

func TestStatGone(t *testing.T) {
	for _, c := range []struct {
		state   byte
		threads int
		want    bool
	}{{'S', 1, false}, {'Z', 1, true}, {'X', 0, true}, {'Z', 3, false}, {'T', 1, false}} {
		s := stat{state: c.state, threads: c.threads}
		if s.gone() != c.want {
			t.Errorf("state %c with %d threads: gone is %v", c.state, c.threads, !c.want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got := parseStatus([]byte("Name:\tpython3\nTgid:\t4242\nNgid:\t0\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4242\t17\t1\nNSpgid:\t9\n"))
	want := status{tgid: 4242, uid: 1001, nsPIDs: []int{4242, 17, 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(status{})); diff != "" {
		t.Error(diff)
	}
	if got := parseStatus([]byte("Uid:\t1\nTgid\nNSpid:\t-1\tx\n")); got.uid != -1 || got.tgid != 0 || got.nsPIDs != nil {
		t.Errorf("broken lines were taken for %+v", got)
	}
}

func TestParseUint(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "17": 17, "18446744073709551615": 1<<64 - 1} {
		if v, ok := parseUint([]byte(text)); !ok || v != want {
			t.Errorf("%s: %d, %v", text, v, ok)
		}
	}
	for _, bad := range []string{"", "-1", "1 ", "0x1", "18446744073709551616", "99999999999999999999", "111111111111111111111"} {
		if v, ok := parseUint([]byte(bad)); ok {
			t.Errorf("%q was taken for %d", bad, v)
		}
	}
}

func TestFindUser(t *testing.T) {
	const passwd = "# comment:x:1000:\nroot:x:0:0:root:/root:/bin/sh\n+nis:x:1000:\n:x:1000:\nbroken\nalice:x:1000:1000::/h:/s\nbob:x:1000:\nlast:x:7"
	for uid, want := range map[int]string{0: "root", 1000: "alice", 7: "", 100: ""} {
		if name, ok := findUser([]byte(passwd), uid); name != want || ok != (want != "") {
			t.Errorf("user %d: %q, %v; want %q", uid, name, ok, want)
		}
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
		if got := joinArguments([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("4242 (python3)" + statTail))
	f.Add([]byte("1 (a) b) R 0 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStat(b)
		if err == nil && (s.ppid < 0 && s.ppid != -1 || len(s.comm) > len(b)) {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Tgid:\t4242\nUid:\t1\t2\t3\t4\nNSpid:\t1\t2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, pid := range parseStatus(b).nsPIDs {
			if pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
	})
}
