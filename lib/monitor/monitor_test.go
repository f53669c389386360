package monitor

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

const table = "device bus_id chip chip_id pool used_bytes bound total_bytes later banks\n" +
	"2 0000:41:00.0 all - dram 4096 at_least 8192 x 8\n" +
	"2 0000:41:00.0 L 77 dram - missing - - -\n"

// TestDetailed reads what a ttmond answers, a later one too.
func TestDetailed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("device") != "2" {
			http.Error(w, `{"error":"there is no such device"}`, http.StatusNotFound)
			return
		}
		w.Write([]byte(table))
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	t.Setenv("TTMON_SOCKET", socket)
	list, err := Detailed(t.Context(), 2)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if want := (Pool{Device: 2, BusID: "0000:41:00.0", Chip: "all", Name: "dram", Used: Figure{4096, AtLeast}, Total: 8192, Banks: 8}); list[0] != want {
		t.Errorf("%+v", list[0])
	}
	if want := (Pool{Device: 2, BusID: "0000:41:00.0", Chip: "L", ChipID: 77, Name: "dram", Used: Figure{0, Missing}}); list[1] != want {
		t.Errorf("%+v", list[1])
	}
	if sums, err := System(t.Context(), 2); err != nil || len(sums) != 1 || sums["dram"] != (Figure{4096, AtLeast}) {
		t.Errorf("%+v, %v", sums, err)
	}
	if _, err := Detailed(t.Context(), 3); err == nil || errors.Is(err, ErrNoDaemon) {
		t.Errorf("a device that there is not: %v", err)
	}
	t.Setenv("TTMON_SOCKET", socket+".not")
	if _, err := Detailed(t.Context(), 2); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("no ttmond: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(table)
	f.Add("device\n-1")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parse(text)
		for _, p := range list {
			if err == nil && p.Device < 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}
