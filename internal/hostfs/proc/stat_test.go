package proc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// statTail is a stat file behind its name.
const statTail = " S 1 4242 4242 34816 4242 4194304 1000 0 5 0 250 31 7 3 20 0 12 0 987654 4096000 2500 18446744073709551615 1 1 140729600"

func TestParseStat(t *testing.T) {
	want := Stat{State: 'S', TTY: 34816, PPID: 1, Flags: 4194304, CPU: 281, ChildrenCPU: 10, Threads: 12, Start: 987654, Size: 4096000, Stack: 140729600}
	for _, name := range []string{"python3", "", "a b", ") S 1 (", "(sd-pam)", "x\ny", "tt) Z 7 7"} {
		t.Run(name, func(t *testing.T) {
			want.Comm = []byte(name)
			got, err := ParseStat([]byte("4242 (" + name + ")" + statTail + "\n"))
			if err != nil {
				t.Errorf("%q: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q: %s", name, diff)
			}
		})
	}
	for _, bad := range []string{
		"", "4242", "4242 (x", "4242 (x)", "4242 (x) S 1 2", ")(", "1 (x) S a" + statTail,
		"1 (x)" + strings.Replace(statTail, "987654", "-1", 1),
	} {
		t.Run(bad, func(t *testing.T) {
			if s, err := ParseStat([]byte(bad)); err == nil {
				t.Errorf("%q was parsed as %+v", bad, s)
			}
		})
	}
}

func TestGone(t *testing.T) {
	for _, c := range []struct {
		state   byte
		threads int
		want    bool
	}{{'S', 1, false}, {'Z', 1, true}, {'X', 0, true}, {'Z', 3, false}, {'T', 1, false}} {
		t.Run(fmt.Sprintf("%c with %d threads", c.state, c.threads), func(t *testing.T) {
			s := Stat{State: c.state, Threads: c.threads}
			if s.Gone() != c.want {
				t.Errorf("gone is %v", !c.want)
			}
		})
	}
}

func TestParseUint(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "17": 17, "18446744073709551615": 1<<64 - 1} {
		t.Run(text, func(t *testing.T) {
			if v, ok := parseUint([]byte(text)); !ok || v != want {
				t.Errorf("%s: %d, %v", text, v, ok)
			}
		})
	}
	for _, bad := range []string{"", "-1", "1 ", "0x1", "18446744073709551616", "99999999999999999999", "111111111111111111111"} {
		t.Run(bad, func(t *testing.T) {
			if v, ok := parseUint([]byte(bad)); ok {
				t.Errorf("%q was parsed as %d", bad, v)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("4242 (python3)" + statTail))
	f.Add([]byte("1 (a) b) R 0 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStat(b)
		if err == nil && (s.PPID < 0 && s.PPID != -1 || len(s.Comm) > len(b)) {
			t.Errorf("%+v", s)
		}
	})
}
