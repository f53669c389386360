package why

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

const (
	kib  = 1 << 10
	mib  = 1 << 20
	base = 64 * kib
)

func frame(file string, line int, function string) ledgerfile.Frame {
	return ledgerfile.Frame{File: file, Line: line, Function: function}
}

// sites are the places in a program that hold blocks, from 1.
var sites = []failure.Site{
	{Number: 1, Stack: []ledgerfile.Frame{
		frame("/opt/venv/lib/python3.12/site-packages/ttnn/decorators.py", 500, "__call__"), frame("/home/anna/model.py", 88, "kv_cache"), frame("/home/anna/serve.py", 12, "main"),
	}},
	{Number: 2, Stack: []ledgerfile.Frame{frame("/home/anna/model.py", 131, "scores"), frame("/home/anna/serve.py", 14, "main")}},
	{Number: 3, Tag: "weights", Stack: []ledgerfile.Frame{frame("/home/anna/model.py", 40, "embed"), frame("/home/anna/serve.py", 10, "main")}},
}

// block is a block of a bank: where it lies from the start of the bank, its size,
// its place in the program and its age.
type block struct {
	at, size uint64
	site     uint32
	age      time.Duration
}

func record(pool model.Pool, capacity, need uint64, list ...block) *failure.Record {
	l := blocks.NewList(blocks.Geometry{Pool: pool, Banks: 8, Base: base, Capacity: capacity, Align: 64, Smallest: 64}, blocks.FromStart)
	for _, b := range list {
		l.Alloc(blocks.Block{Addr: base + b.at, Size: b.size, Site: b.site, Born: noon.Add(-b.age).UnixNano()})
	}
	device, no := 0, false
	return &failure.Record{
		Schema: failure.Schema, ID: "f12", Kind: failure.NoRoom, Time: noon, First: noon, Last: noon, Count: 1, Source: "track", Pool: pool.String(), State: l,
		Process: failure.Process{PID: 4242, Start: 1, UID: 1000, Name: "python", Command: "python serve.py", Release: "ttnn 0.81.1"},
		Chips:   []failure.Chip{{ID: 7, Device: &device, BusID: "0000:01:00.0", Board: "p150a"}},
		Request: failure.Request{Bytes: 8 * need, BankBytes: need, Page: 2048, Sharded: &no},
		Stack:   []ledgerfile.Frame{frame("/home/anna/model.py", 131, "scores"), frame("/home/anna/serve.py", 15, "main")},
		Sites:   sites, Siblings: []failure.Sibling{}, Others: []failure.Other{}, Doubts: []failure.DoubtKind{},
	}
}

// stories are failures of every kind.
func stories() map[string]*failure.Record {
	held := []block{
		{0, 400 * kib, 1, 2 * time.Minute},
		{416 * kib, 240 * kib, 1, 2 * time.Minute},
		{700 * kib, 128 * kib, 2, 4 * time.Second},
		{868 * kib, 256 * kib, 2, 3 * time.Second},
		{1124 * kib, 176 * kib, 3, 2 * time.Minute},
	}
	all := map[string]*failure.Record{
		"fragmented": record(model.L1, 1300*kib, 80*kib, held...),
		"full":       record(model.L1, 1300*kib, 512*kib, held...),
		"too large":  record(model.DRAM, 4096*mib, 5000*mib, block{0, 1024 * mib, 1, time.Hour}),
		"clash":      record(model.L1, 1300*kib, 0, block{500 * kib, 700 * kib, 1, time.Minute}, block{1200 * kib, 100 * kib, 2, time.Second}),
		"trace":      record(model.Trace, 0, 3*mib),
		"region":     record(model.Trace, 128*kib, 0),
		"caught":     record(model.L1, 1300*kib, 80*kib, held...),
		"no lines":   record(model.L1, 1300*kib, 80*kib, held...),
		"unknown":    record(model.DRAM, 4096*mib, 64*mib, block{0, 1024 * mib, 1, time.Hour}),
		"mesh":       record(model.DRAM, 64*mib, 24*mib, block{8 * mib, 20 * mib, 1, time.Hour}, block{44 * mib, 8 * mib, 2, time.Minute}),
		"hostile":    record(model.L1, 1300*kib, 80*kib, held...),
	}
	clash := all["clash"]
	clash.Kind, clash.Request = failure.Clash, failure.Request{}
	clash.Clash = &failure.Collision{Program: 3, Reach: base + 620*kib, Lowest: base + 500*kib, Overlap: 120 * kib, Base: base, Cores: []int{0, 0, 7, 7}}
	region := all["region"]
	region.Kind, region.Request = failure.Trace, failure.Request{}
	region.Region = &failure.Region{Size: 1 * mib, Needed: 1*mib + 300*kib}
	region.State.Alloc(blocks.Block{Addr: base, Size: 64 * kib, Asked: 512 * kib, Site: 1, Born: noon.Add(-time.Minute).UnixNano()})
	region.State.Alloc(blocks.Block{Addr: base + 64*kib, Size: 40 * kib, Asked: 320 * kib, Site: 2, Born: noon.Add(-time.Second).UnixNano()})
	caught := all["caught"]
	caught.Count, caught.First, caught.Last = 1000, noon.Add(-time.Minute), noon.Add(time.Second)
	bare := all["no lines"]
	bare.Source, bare.Stack, bare.Sites = "uprobe", nil, []failure.Site{}
	bare.State = record(model.L1, 1300*kib, 0, block{0, 640 * kib, 0, time.Minute}, block{700 * kib, 560 * kib, 0, time.Second}).State
	bare.Others = []failure.Other{{PID: 17, Name: "python", Bytes: 3 * mib, Bound: "at_least"}, {PID: 18, Bytes: mib, Bound: "exact"}}
	all["unknown"].State.Origin = blocks.Late
	all["mesh"].Chips = make([]failure.Chip, 8)
	hostile := all["hostile"]
	hostile.Process.Command = "python\x1b[2J <script>alert(1)</script>"
	hostile.Sites = []failure.Site{{Number: 1, Tag: "\x1b]0;x\a<b>", Stack: []ledgerfile.Frame{frame("/a/\x1b[31m\"><img src=x>.py", 1, "</title>\n")}}}
	hostile.Stack = hostile.Sites[0].Stack
	for _, r := range all {
		r.Judge()
	}
	return all
}

func TestStories(t *testing.T) {
	for name, r := range stories() {
		t.Run(name, func(t *testing.T) {
			o, to := Options{Now: noon.Add(12 * time.Second), Top: 8, User: func(int) string { return "anna" }}, lines.Options{Width: 80}
			text := Append(nil, r, o, to)
			for line := range strings.Lines(string(text)) {
				if n := words.Width(strings.TrimSuffix(line, "\n")); n > to.Width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			file := "testdata/" + strings.ReplaceAll(name, " ", "-")
			golden.Check(t, file+".txt", text)
			golden.Check(t, file+".html", sheet.AppendHTML(nil, Sheet(r, Options{Now: o.Now})))
			to.Color = true
			golden.Check(t, file+".colour.txt", Append(nil, r, o, to))
		})
	}
}

// TestColourOnlyColours: without its colours a story is the plain one.
func TestColourOnlyColours(t *testing.T) {
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, r := range stories() {
		want := string(Append(nil, r, Options{Now: noon}, lines.Options{Width: 80}))
		got := colour.ReplaceAllString(string(Append(nil, r, Options{Now: noon}, lines.Options{Width: 80, Color: true})), "")
		if got != want {
			t.Errorf("%s:\n%s\ninstead of\n%s", name, got, want)
		}
	}
}

// TestASCII: where a terminal shows no more than ASCII, there is no more.
func TestASCII(t *testing.T) {
	to := lines.Options{Width: 80, ASCII: true}
	for name, r := range stories() {
		text := Append(nil, r, Options{Now: noon}, to)
		text = AppendList(text, []failure.Summary{r.Summary()}, noon, to)
		for _, c := range string(text) {
			if c > 126 || c < 32 && c != '\n' {
				t.Errorf("%s has %q:\n%s", name, c, text)
				break
			}
		}
	}
}

// TestForeignText: what programs are called, and their lines, is text and no more.
func TestForeignText(t *testing.T) {
	r := stories()["hostile"]
	text := string(Append(nil, r, Options{Now: noon, Stack: true}, lines.Options{Width: 120})) + string(AppendList(nil, []failure.Summary{r.Summary()}, noon, lines.Options{})) + story.Event(r, true)
	if strings.ContainsAny(text, "\x1b\a") {
		t.Errorf("%q", text)
	}
	page := string(sheet.AppendHTML(nil, Sheet(r, Options{Now: noon})))
	for _, bad := range []string{"<script", "<img", "<b>", "\x1b"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

func TestWidths(t *testing.T) {
	for name, r := range stories() {
		for _, width := range []int{40, 60, 200} {
			for line := range strings.Lines(string(Append(nil, r, Options{Now: noon, Stack: true}, lines.Options{Width: width}))) {
				if n := words.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s in %d columns takes %d: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestList(t *testing.T) {
	var list []failure.Summary
	all := stories()
	for i, name := range []string{"fragmented", "too large", "clash", "trace", "region", "caught", "no lines", "unknown", "hostile"} {
		s := all[name].Summary()
		s.Last = noon.Add(-time.Duration(i*i) * time.Minute)
		list = append(list, s)
	}
	list[3].Bytes = 0 // not known
	golden.Check(t, "testdata/list-80.txt", AppendList(nil, list, noon, lines.Options{Width: 80}))
	golden.Check(t, "testdata/list-140.txt", AppendList(nil, list, noon, lines.Options{Width: 140}))
}

// TestMap: what is drawn of the bank is what its holders hold.
func TestMap(t *testing.T) {
	for name, r := range stories() {
		var m *sheet.Map
		var table *sheet.Table
		for _, p := range Sheet(r, Options{Now: noon}).Parts {
			if p.Map != nil {
				m = p.Map
			}
			if p.Table != nil {
				table = p.Table
			}
		}
		if m == nil {
			continue
		}
		var sum, held uint64
		for _, s := range m.Spans {
			sum += s[1]
		}
		for _, r := range table.Rows {
			held += uint64(*r.Cells[2].N)
		}
		if sum != held || sum != r.State.Usage().BankBytes {
			t.Errorf("%s: %d bytes are drawn, %d are held", name, sum, held)
		}
	}
}

// TestSubDevice: a failure in the allocator of a sub-device names it, and what
// sized it.
func TestSubDevice(t *testing.T) {
	number := 1
	r := record(model.L1, 256*kib, 512*kib)
	r.SubDevice = &number
	r.Judge()
	if got := story.What(r); got != "L1 of sub-device 1: no room" {
		t.Errorf("what: %q", got)
	}
	if got := story.Verdict(r); !strings.Contains(got, "256 KiB for the sub-device (local_l1_size)") {
		t.Errorf("verdict: %q", got)
	}
}

// TestEventForAll: the event of a failure is for all users, and for ever: it names the
// program, without its arguments and lines of code.
func TestEventForAll(t *testing.T) {
	r := record(model.DRAM, 4096, 8192)
	r.Process.Command = "/usr/bin/python3 /home/anna/serve.py --key=secret"
	r.Judge()
	if got := story.Event(r, false); !strings.HasPrefix(got, "serve.py (4242): ") || strings.Contains(got, "secret") || strings.Contains(got, "model.py") {
		t.Error(got)
	}
	if got := story.Event(r, true); !strings.Contains(got, "secret") || !strings.Contains(got, "model.py") {
		t.Errorf("for its user: %s", got)
	}
}
