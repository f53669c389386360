package selftest

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/selftest/report"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestParseGrep(t *testing.T) {
	paths := []string{"/sys/a:b/temp1_input", "/sys/a:b/temp1"}
	got := parseGrep("/sys/a:b/temp1_input:61000\n/sys/a:b/temp1:x:y \nnoise\n", paths)
	if len(got) != 2 || got[paths[0]] != "61000" || got[paths[1]] != "x:y" {
		t.Errorf("%q", got)
	}
}

func TestGeneration(t *testing.T) {
	for text, want := range map[string]float64{"2.5 GT/s PCIe": 1, "16.0 GT/s PCIe": 4, "32.0 GT/s PCIe": 5, "Unknown": 0, "": 0} {
		if n, ok := generation(text); n != want || ok != (want > 0) {
			t.Errorf("%q: %v, %v", text, n, ok)
		}
	}
}

func TestBetween(t *testing.T) {
	for name, tt := range map[string]struct {
		n, a, b, near float64
		want          bool
	}{
		"equal":   {61.25, 61.25, 61.25, 0, true},
		"rising":  {62, 61, 63, 0, true},
		"falling": {62, 63, 61, 0, true},
		"outside": {64, 61, 63, 0, false},
		"near":    {64, 61, 63, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := between(tt.n, tt.a, tt.b, tt.near); got != tt.want {
				t.Error(got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		figure model.Bytes
		want   report.Verdict
	}{
		"right":        {model.ExactBytes(64 * mib), report.Right},
		"wrong":        {model.ExactBytes(63 * mib), report.Wrong},
		"at least":     {model.BoundBytes(32*mib, model.AtLeast), report.Bounded},
		"at too least": {model.BoundBytes(65*mib, model.AtLeast), report.Wrong},
		"about":        {model.BoundBytes(65*mib, model.Unsure), report.Bounded},
		"a lie":        {model.BoundBytes(1024*mib, model.Unsure), report.Wrong},
		"not known":    {model.NoBytes(model.Denied), report.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got, note := judge(tt.figure, 64*mib); got != tt.want {
				t.Errorf("%s (%s), want %s", got, note, tt.want)
			}
		})
	}
}

// region makes a region with one slot.
func region(pid int, dram uint64) []byte {
	b := make([]byte, regionSize)
	binary.LittleEndian.PutUint32(b[slotsAt+3*slotSize:], uint32(pid))
	binary.LittleEndian.PutUint64(b[slotsAt+3*slotSize+slotDRAM:], dram)
	return b
}

func TestRegionThatLies(t *testing.T) {
	list := decodeSlots(region(42, 5<<30), 7)
	if len(list) != 1 || list[0].pid != 42 || list[0].chip != 7 || list[0].bytes[model.DRAM] != 5<<30 {
		t.Fatalf("%+v", list)
	}
	for name, tt := range map[string]struct {
		source model.Source
		figure model.Bytes
		want   report.Verdict
	}{
		"the same":                 {model.FromShm, model.ExactBytes(5 << 30), report.Right},
		"marked":                   {model.FromShm, model.BoundBytes(5<<30, model.Unsure), report.Bounded},
		"another number":           {model.FromShm, model.ExactBytes(1 << 30), report.Wrong},
		"a better source has less": {model.FromUprobe, model.ExactBytes(1 << 30), report.Wrong},
		"a better source has more": {model.FromUprobe, model.ExactBytes(6 << 30), report.Bounded},
	} {
		t.Run(name, func(t *testing.T) {
			u := &model.DeviceUse{Source: tt.source}
			var shown model.PoolBytes
			shown[model.DRAM] = tt.figure
			got, ok := compareSlot(list[0], list[0], model.DRAM, u, &shown)
			if !ok || got.Verdict != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
}

func TestTouches(t *testing.T) {
	for path, want := range map[string]bool{
		"/dev/tenstorrent/0": true, "/sys/devices/pci0000:40/0000:41:00.0/resource4": true, "/sys/devices/pci0000:40/0000:41:00.0/config": true,
		"/sys/devices/pci0000:40/0000:41:00.0/tenstorrent/tenstorrent!0/tt_aiclk": false, "/etc/config": false, "socket:[1]": false,
	} {
		if got := touches(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// A ttmond of another release is found, whatever else it answers.
func TestOtherRelease(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "ttmond.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/health") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"status":"ok","version":"0.0.1","pid":1}`))
			return
		}
		http.NotFound(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	r, err := Run(context.Background(), Options{Host: host.Options{Daemon: socket, Getenv: func(string) string { return "" }}, Program: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if got := find(r, "release of ttmond"); got == nil || got.Verdict != report.Wrong || got.Witness != "0.0.1" {
		t.Errorf("%+v", got)
	}
}

func find(r *report.Report, what string) *report.Row {
	for i := range r.Rows {
		if r.Rows[i].What == what {
			return &r.Rows[i]
		}
	}
	return nil
}

func TestSlowOnly(t *testing.T) {
	for release, want := range map[string]bool{"0.71.2": true, "0.72.0": false, "0.81.1": false, "1.0": false, "": false, "x.y": false} {
		if got := slowOnly(release); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}
