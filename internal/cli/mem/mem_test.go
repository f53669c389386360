package mem

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// process is one that has a list of DRAM with a block in it.
func process(t *testing.T) []byte {
	t.Helper()
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 2, Capacity: 1 << 20, Align: 32, Smallest: 32}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: 4096, Site: 3})
	b, err := json.Marshal(map[string]any{"process": &blocks.Process{PID: 4242, Start: 7, Allocators: []*blocks.Allocator{{ID: 1, Chips: []uint64{1}, Lists: []*blocks.List{l}}}}, "sites": []callsite.Site{{Number: 3, Stack: []ledgerfile.Frame{{File: "model.py", Line: 88}}, Blocks: 1, Bytes: 8192}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// daemon is a ttmond that watches one process; the others of its snapshot it does not.
func daemon(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	snap := sample.Four()
	snap.Processes = []model.Process{sample.Serve(4242, sample.Use(&snap.Devices[0], 1<<20, 0)), sample.Serve(7, sample.Use(&snap.Devices[1], 1<<20, 0))}
	watched := process(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/snapshot", func(w http.ResponseWriter, _ *http.Request) { w.Write(wire.Append(nil, snap)) })
	mux.HandleFunc("/v1/processes/4242/blocks", func(w http.ResponseWriter, _ *http.Request) { w.Write(watched) })
	mux.HandleFunc("/v1/processes/9/buffers", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"pid":9,"total":3,"total_bytes":3145728,"buffers":[{"kind":"buffer","index":1,"pool":"dram","id":4096,"size_bytes":2097152},{"kind":"buffer","device":7,"pool":"l1","size_bytes":1024}]}`)
	})
	server := &http.Server{Handler: mux}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return socket
}

func ask(t *testing.T, q Question, socket string) (*Answer, error) {
	t.Helper()
	h, err := host.Open(host.Options{Daemon: socket, Direct: socket == "", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return q.Fetch(h)
}

func TestAsk(t *testing.T) {
	socket := daemon(t)
	for name, tt := range map[string]struct {
		q    Question
		code int // 0: an answer
	}{
		"a process":            {Question{PID: 4242}, 0},
		"all processes":        {Question{}, 0},
		"of its device":        {Question{Only: selection.Selection{"0"}}, 0},
		"of another device":    {Question{Only: selection.Selection{"1"}}, exit.NoDevice},
		"of a device too many": {Question{Only: selection.Selection{"17"}}, exit.BadArgument},
		"one that is not":      {Question{PID: 7}, exit.NoDevice},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ask(t, tt.q, socket)
			if tt.code == 0 {
				if err != nil || len(a.Processes) != 1 || a.Processes[0].PID != 4242 {
					t.Errorf("%+v, %v", a, err)
				}
				return
			}
			if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != tt.code {
				t.Errorf("%v, want code %d", err, tt.code)
			}
		})
	}
	_, err := ask(t, Question{PID: 4242}, "")
	if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.Unsupported {
		t.Errorf("without a ttmond: %v", err)
	}
}

// TestReporter: of a process that reports its buffers itself these are listed. Its
// allocator is not known, so there are no tt-metal reports of it.
func TestReporter(t *testing.T) {
	a, err := ask(t, Question{PID: 9}, daemon(t))
	if err != nil {
		t.Fatal(err)
	}
	text := string(a.Append(nil, nil, lines.Options{}))
	for _, want := range []string{"1  DRAM  2.0 MiB", "0x1000", "L1    1.0 KiB", "another user's", "3 buffers, 3.0 MiB (the largest 2 are listed)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if err := a.WriteReports(t.TempDir()); err == nil {
		t.Error("tt-metal's reports were written of a process whose allocator is not known")
	}
	b, err := a.AppendJSON(nil, nil)
	var doc struct {
		Reported struct{ Buffers []struct{ Pool string } }
	}
	if err := errors.Join(err, json.Unmarshal(b, &doc)); err != nil || len(doc.Reported.Buffers) != 2 {
		t.Errorf("%v\n%s", err, b)
	}
}

// Without a ttmond, what is known of a process by other means is said.
func TestKnownWithout(t *testing.T) {
	snap := sample.Four()
	snap.Processes = []model.Process{sample.Serve(4242, sample.Use(&snap.Devices[0], 1<<30, 1<<20), sample.Use(&snap.Devices[1], 2<<30, 0))}
	for pid, want := range map[int]string{
		4242: "process 4242 holds 1.0 GiB of DRAM and 1.0 MiB of L1 on device 0, 2.0 GiB of DRAM and 0 B of L1 on device 1; ",
		7:    "process 7 uses no device, as far as can be seen; ",
		0:    "",
	} {
		t.Run(fmt.Sprint(pid), func(t *testing.T) {
			if got := (Question{PID: pid}).knownOf(snap); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	a, err := ask(t, Question{PID: 4242}, daemon(t))
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := bankmap.FitQuery{Size: "512K", Type: "bfloat16", Layout: "tile", Pool: "dram"}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(a.Append(nil, &wanted, lines.Options{ASCII: true})); !strings.Contains(text, "would 512") {
		t.Errorf("no answer in\n%s", text)
	}
	b, err := a.AppendJSON(nil, &wanted)
	var doc struct {
		Schema    string
		Processes []*blocks.Process
		Fits      []struct{ Known bool }
	}
	if err != nil || json.Unmarshal(b, &doc) != nil || doc.Schema != "ttmon.blocks/1" || len(doc.Processes) != 1 || len(doc.Fits) != 1 || !doc.Fits[0].Known {
		t.Errorf("%s, %v", b, err)
	}
	if again := a.Refresh(t.Context()); again.Err != nil || again.Process.PID != 4242 {
		t.Errorf("%+v", again)
	}
}

func TestWriteReports(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reports")
	a, err := ask(t, Question{PID: 4242}, daemon(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.WriteReports(dir); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) == 0 {
		t.Errorf("%d files, %v", len(list), err)
	}
	a.Processes[0].Lost = 1
	if e, ok := errors.AsType[*exit.Error](a.WriteReports(dir)); !ok || e.Code != exit.Unsupported {
		t.Errorf("of a process of which not all is known: %v", e)
	}
}

// TestLinesThroughTtmond: a ttmond that reads a process's ledger says which lines hold
// its blocks, to who cannot read that ledger.
func TestLinesThroughTtmond(t *testing.T) {
	socket := daemon(t)
	for name, q := range map[string]Question{"a process": {PID: 4242}, "of its device": {Only: selection.Selection{"0"}}} {
		t.Run(name, func(t *testing.T) {
			a, err := ask(t, q, socket)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(a.Append(nil, nil, lines.Options{ASCII: true})); !strings.Contains(text, "model.py:88") {
				t.Errorf("no line:\n%s", text)
			}
			if b, err := a.AppendJSON(nil, nil); err != nil || !strings.Contains(string(b), `"file": "model.py"`) {
				t.Errorf("no line: %s, %v", b, err)
			}
		})
	}
}
