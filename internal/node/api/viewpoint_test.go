package api

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

func TestParseHiding(t *testing.T) {
	const before = "22 28 0:21 / /sys rw,nosuid - sysfs sysfs rw\n"
	for name, c := range map[string]struct {
		line string
		want Hiding
	}{
		"plain":        {"23 28 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw\n", Hiding{0, -1}},
		"invisible":    {"23 28 0:22 / /proc rw,relatime - proc proc rw,gid=27,hidepid=invisible\n", Hiding{2, 27}},
		"number":       {"23 28 0:22 / /proc rw,relatime - proc proc rw,hidepid=1\n", Hiding{1, -1}},
		"ptraceable":   {"23 28 0:22 / /proc rw,relatime - proc proc rw,hidepid=ptraceable\n", Hiding{4, -1}},
		"unheard of":   {"23 28 0:22 / /proc rw,relatime - proc proc rw,hidepid=tomorrow\n", Hiding{2, -1}},
		"mounted over": {"23 28 0:22 / /proc rw - proc proc rw,hidepid=2\n24 23 0:30 / /proc rw - proc proc rw\n", Hiding{0, -1}},
		"another":      {"23 28 0:22 / /mnt/proc rw - proc proc rw,hidepid=2\n", Hiding{0, -1}},
		"broken":       {"23 28\n - proc\n\n", Hiding{0, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseHiding([]byte(before + c.line)); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		})
	}
}

func FuzzParseHiding(f *testing.F) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("23 28 0:22 / /proc rw - proc proc rw,hidepid=2,gid=x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := ParseHiding(b); h.Level < 0 || h.GID < -1 {
			t.Errorf("%+v", h)
		}
	})
}

func TestViewpoint(t *testing.T) {
	alice := caller{uid: 1000, gids: []int{1000, 27}, exists: true}
	root := caller{uid: 0, exists: true}
	for name, c := range map[string]struct {
		h    Hiding
		c    caller
		want Viewpoint
	}{
		"nothing hidden": {Hiding{0, -1}, alice, Viewpoint{0, 1000, true}},
		"hidden":         {Hiding{2, -1}, alice, Viewpoint{2, 1000, true}},
		"root":           {Hiding{2, -1}, root, Viewpoint{}},
		"in the group":   {Hiding{2, 27}, alice, Viewpoint{0, 1000, true}},
		"not in it":      {Hiding{1, 28}, alice, Viewpoint{1, 1000, true}},
		"user unknown":   {Hiding{1, 0}, caller{}, Viewpoint{1, -1, true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.h.viewpoint(c.c); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	s := snapshot(1)
	s.Processes[0].Devices = []model.DeviceUse{{Device: 3, Doubts: []model.Doubt{{Kind: model.SlotAdopted, Name: "secret"}}}}
	s.Processes[0].Doubts = []model.Doubt{{Kind: model.OtherThreads, Release: "secret"}}
	s.Processes[0].Condition = model.Stopped
	told := []model.Doubt{{Kind: model.SlotUnseen, Name: "secret"}, {Kind: model.ProcessDenied, UID: 4711}}
	s.Devices = append(s.Devices, model.Device{Doubts: told, Memory: model.Memory{Doubts: told}, Chips: []model.Chip{{Memory: model.Memory{Doubts: told}}}})
	s.Unmatched = []model.Chip{{Memory: model.Memory{Doubts: told}}}
	s.Processes[0].SlurmJob = "4711"
	s.StaleSlots = []model.StaleSlot{{Name: "x"}}
	before := wire.Append(nil, s)

	got := Viewpoint{1, 1000, true}.Filter(s)
	p := got.Processes[0]
	if p.Cmdline.Status != model.Denied || p.Name.Known() || p.SlurmJob != "" || p.UID.V != 0 || !p.UID.Known() || got.StaleSlots[0].Name != "" {
		t.Errorf("root's process for another user: %+v", p)
	}
	if len(p.Devices) != 1 {
		t.Error("its memory is hidden too")
	}
	if out := wire.Append(nil, got); bytes.Contains(out, []byte("secret")) || p.Condition != "" {
		t.Errorf("what /proc hides is in %s", out)
	}
	if out := wire.Append(nil, Viewpoint{2, 1000, true}.Filter(s)); bytes.Contains(out, []byte("4711,")) || bytes.Contains(out, []byte("uid 4711")) {
		t.Errorf("hidepid=2: whose a process is, is in %s", out)
	}
	if diff := cmp.Diff(s.Processes[1], got.Processes[1]); diff != "" {
		t.Errorf("the user's own process (-want +got):\n%s", diff)
	}
	if p := (Viewpoint{2, 1000, true}).Filter(s).Processes[0]; p.UID.Known() || p.User.Known() {
		t.Errorf("hidepid=2: %+v", p)
	}
	if (Viewpoint{}).Filter(s) != s {
		t.Error("who sees everything gets a copy")
	}
	if !slices.Equal(before, wire.Append(nil, s)) {
		t.Error("the published snapshot was changed")
	}
}

// The kernel's answer about the caller, through a real socket.
func TestIdentify(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	who := identify(other)
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if !who.exists || who.uid != os.Getuid() || who.pid != os.Getpid() {
		t.Errorf("%+v", who)
	}
	for _, g := range groups {
		if !slices.Contains(who.gids, g) {
			t.Errorf("groups %v, want %d among them", who.gids, g)
		}
	}
	if got := identify(nil); got.exists {
		t.Errorf("without credentials: %+v", got)
	}
}
