package allocsock

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

const testPID = 4242

// msg is an AllocMessage to be packed in any version.
type msg struct {
	typ        byte
	dev        int32
	size       uint64
	bufferType byte
	pid        int32
	id         uint64
	stamp      uint64
}

func (m msg) pack(size int) []byte {
	f := make([]byte, size)
	f[0], f[16] = m.typ, m.bufferType
	binary.LittleEndian.PutUint32(f[4:], uint32(m.dev))
	binary.LittleEndian.PutUint64(f[8:], m.size)
	binary.LittleEndian.PutUint32(f[20:], uint32(m.pid))
	binary.LittleEndian.PutUint64(f[24:], m.id)
	binary.LittleEndian.PutUint64(f[32:], m.stamp)
	return f
}

func allocMsg(dev int32, id, size uint64, bufferType byte) msg {
	return msg{typ: msgAlloc, dev: dev, id: id, size: size, bufferType: bufferType, pid: testPID, stamp: 1763200000123456789}
}
func freeMsg(dev int32, id uint64) msg { return msg{typ: msgFree, dev: dev, id: id, pid: testPID} }

func packRecord(typ byte, dev int32, size, id uint64, pid int32) []byte {
	f := make([]byte, cbRecordLen)
	f[0] = typ
	binary.LittleEndian.PutUint32(f[4:], uint32(dev))
	binary.LittleEndian.PutUint64(f[8:], size)
	binary.LittleEndian.PutUint64(f[16:], id)
	binary.LittleEndian.PutUint32(f[24:], uint32(pid))
	return f
}

func newTestDecoder() *decoder {
	return &decoder{peer: testPID, classify: func(bool) reading { return readingMetal }}
}

// feed gives a decoder one read after the other and returns what it made of
// them. After the last read comes end.
func feed(d *decoder, end ending, reads ...[]byte) (events []ledger.Event, reqs []request, rest []byte) {
	for i, r := range reads {
		rest = append(rest, r...)
		e := drained
		if i == len(reads)-1 {
			e = end
		}
		for {
			n, req, _ := d.decode(rest, e)
			events = append(events, d.events...)
			d.events = d.events[:0]
			rest = rest[n:]
			if req.kind == noRequest {
				break
			}
			if req.kind != flush {
				reqs = append(reqs, req)
			}
		}
	}
	return events, reqs, rest
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func TestDialects(t *testing.T) {
	a := allocMsg(3, 64, 1000, 0)
	ea := ledger.Event{ID: 64, Size: 1000, Device: 3, Op: ledger.Alloc, Pool: uint8(model.DRAM)}
	b := freeMsg(3, 64)
	eb := ledger.Event{ID: 64, Device: 3, Op: ledger.Free}
	q := msg{typ: msgQuery, dev: 5}
	info := msg{typ: msgDeviceInfoQuery, dev: -1}
	stats := append([]byte{2}, make([]byte, 23)...)
	cb := packRecord(msgCBAlloc, 1, 4096, 0x19000, testPID)
	ecb := ledger.Event{ID: 0x19000, Size: 4096, Device: 1, Op: ledger.CBAlloc}
	ekernel := ledger.Event{ID: 7, Size: 9, Device: 1, Op: ledger.KernelLoad}
	cbMsg := msg{typ: msgCBAlloc, dev: 1, size: 4096, id: 0x19000, pid: testPID}
	foreign := cbMsg
	foreign.pid = 17 // a container's pid

	for name, c := range map[string]struct {
		reads    [][]byte
		end      ending
		events   []ledger.Event
		reqs     []request
		rest     int
		rejected uint64
	}{
		"72":                        {reads: [][]byte{a.pack(72), b.pack(72)}, events: []ledger.Event{ea, eb}},
		"112 in one read":           {reads: [][]byte{join(a.pack(112), b.pack(112))}, events: []ledger.Event{ea, eb}},
		"128 cut in the header":     {reads: [][]byte{join(a.pack(128), b.pack(128)[:20]), b.pack(128)[20:]}, events: []ledger.Event{ea, eb}},
		"144 cut in the zeros":      {reads: [][]byte{a.pack(144)[:72], join(a.pack(144)[72:], b.pack(144))}, events: []ledger.Event{ea, eb}},
		"header only, then the end": {reads: [][]byte{a.pack(144)[:40]}, end: eof, events: []ledger.Event{ea}},
		"half a header":             {reads: [][]byte{a.pack(144)[:39]}, rest: 39},
		"locked, then cut":          {reads: [][]byte{join(a.pack(144), b.pack(144), a.pack(144)[:50])}, end: eof, events: []ledger.Event{ea, eb, ea}},
		"144, then 72":              {reads: [][]byte{join(a.pack(144), b.pack(144), a.pack(72), b.pack(72), a.pack(72), b.pack(72))}, events: []ledger.Event{ea, eb, ea, eb, ea, eb}},
		"query 72":                  {reads: [][]byte{q.pack(72)}, reqs: []request{{askQuery, 5, 72}}},
		"query 112, twice":          {reads: [][]byte{q.pack(112), q.pack(112)}, reqs: []request{{askQuery, 5, 112}, {askQuery, 5, 112}}},
		"queries 128 in one":        {reads: [][]byte{join(q.pack(128), q.pack(128))}, reqs: []request{{askQuery, 5, 128}, {askQuery, 5, 128}}},
		"info 144":                  {reads: [][]byte{info.pack(144)}, reqs: []request{{askDeviceInfo, -1, 144}}},
		"broken snippet 120":        {reads: [][]byte{q.pack(120), q.pack(120)}, reqs: []request{{askQuery, 5, 112}, {askQuery, 5, 112}}},
		"query of 100, at once":     {reads: [][]byte{q.pack(100)}, end: drained, rest: 100},
		"query of 100, settled":     {reads: [][]byte{q.pack(100)}, end: settled, reqs: []request{{askQuery, 5, 72}}},
		"query, then noise":         {reads: [][]byte{join(q.pack(50), bytes.Repeat([]byte{0xee}, 500), a.pack(144))}, events: []ledger.Event{ea}, reqs: []request{{askQuery, 5, 72}}, rejected: 1},
		"alloc, then query":         {reads: [][]byte{join(a.pack(144), q.pack(144))}, events: []ledger.Event{ea}, reqs: []request{{askQuery, 5, 144}}},
		"dump":                      {reads: [][]byte{msg{typ: msgDumpRemaining}.pack(72)}, end: eof, reqs: []request{{kind: dumpRemaining}}},
		"dump kernels":              {reads: [][]byte{msg{typ: msgDumpKernels}.pack(144)}, reqs: []request{{kind: dumpKernels}}},
		"a reply from a client":     {reads: [][]byte{join(msg{typ: msgResponse}.pack(144), a.pack(144))}, events: []ledger.Event{ea}, rejected: 1},
		"statistics":                {reads: [][]byte{stats}, reqs: []request{{kind: askStats}}},
		"free without a pid":        {reads: [][]byte{msg{typ: msgFree, id: 64}.pack(72)}, events: []ledger.Event{{ID: 64, Op: ledger.Free}}},
		"record":                    {reads: [][]byte{cb}, events: []ledger.Event{ecb}},
		"records":                   {reads: [][]byte{join(cb, packRecord(msgKernelLoad, 1, 9, 7, testPID)), cb}, events: []ledger.Event{ecb, ekernel, ecb}},
		"record of a container":     {reads: [][]byte{packRecord(msgCBAlloc, 1, 4096, 0x19000, 17)}, events: []ledger.Event{ecb}},
		"records of a container":    {reads: [][]byte{join(packRecord(msgKernelLoad, 1, 9, 7, 17), packRecord(msgKernelLoad, 1, 9, 7, 17))}, end: settled, events: []ledger.Event{ekernel, ekernel}},
		"CB message":                {reads: [][]byte{cbMsg.pack(144), cbMsg.pack(144)}, events: []ledger.Event{ecb, ecb}},
		"CB message, containered":   {reads: [][]byte{foreign.pack(128), foreign.pack(128)}, events: []ledger.Event{ecb, ecb}},
		"record, then message":      {reads: [][]byte{cb, a.pack(144)}, events: []ledger.Event{ecb, ea}},
		"QUERY_ALL":                 {reads: [][]byte{[]byte("QUERY_"), []byte("ALL\nQUERY_ALL\n")}, reqs: []request{{kind: askAll}, {kind: askAll}}},
		"blank line, ended":         {reads: [][]byte{[]byte("\n")}, end: eof, reqs: []request{{kind: askDump}}},
		"blank line, waiting":       {reads: [][]byte{[]byte("\n")}, end: settled, reqs: []request{{kind: askDump}}, rest: 1},
		"blank line, at once":       {reads: [][]byte{[]byte("\n")}, end: drained, rest: 1},
		"web":                       {reads: [][]byte{[]byte("GET / HTTP/1.1\r\n")}, reqs: []request{{kind: askHTTP}}},
		"other text":                {reads: [][]byte{[]byte("{}")}, end: eof, reqs: []request{{kind: askUnknown}}},
		"probe":                     {reads: [][]byte{nil}, end: eof},
	} {
		t.Run(name, func(t *testing.T) {
			if c.end == more {
				c.end = drained
			}
			d := newTestDecoder()
			events, reqs, rest := feed(d, c.end, c.reads...)
			if diff := cmp.Diff(c.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.reqs, reqs, cmp.AllowUnexported(request{})); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if len(rest) != c.rest {
				t.Errorf("%d bytes left, want %d", len(rest), c.rest)
			}
			if d.rejected != c.rejected {
				t.Errorf("%d messages rejected, want %d", d.rejected, c.rejected)
			}
		})
	}
}

// A line break that was answered may still be the first byte of a message.
func TestNewlineIsAlsoAType(t *testing.T) {
	d := newTestDecoder()
	load := msg{typ: msgKernelLoad, dev: 1, size: 9, id: 7, pid: testPID}.pack(144)
	_, reqs, rest := feed(d, settled, load[:1])
	if len(reqs) != 1 || len(rest) != 1 {
		t.Fatalf("requests %v, %d bytes left", reqs, len(rest))
	}
	events, _, _ := feed(d, drained, load)
	if len(events) != 1 || events[0].Op != ledger.KernelLoad || d.rejected != 0 {
		t.Errorf("events %v, %d rejected", events, d.rejected)
	}
}

func TestBufferTypes(t *testing.T) {
	metal := [5]uint8{uint8(model.DRAM), uint8(model.L1), uint8(ledger.Host), uint8(model.L1Small), uint8(model.Trace)}
	for name, c := range map[string]struct {
		size     int
		answer   reading
		types    []byte
		want     []uint8
		ids      uint64
		counting bool
		asked    int
	}{
		"C++ 144":             {size: 144, types: []byte{0, 1, 2, 3, 4}, want: metal[:]},
		"C++ 112":             {size: 112, answer: readingMetal, types: []byte{0, 1, 2, 3, 4}, want: metal[:], asked: 1},
		"C++ 72 after a 4":    {size: 72, types: []byte{4, 2, 3}, want: []uint8{metal[4], metal[2], metal[3]}},
		"Python 112":          {size: 112, answer: readingPython, types: []byte{0, 1, 2, 3}, want: []uint8{metal[0], metal[1], uint8(model.L1Small), uint8(model.Trace)}, asked: 1},
		"Python 72, counting": {size: 72, answer: readingPython, ids: 1, counting: true, types: []byte{3}, want: []uint8{uint8(model.Trace)}, asked: 1},
		"of no process":       {size: 144, types: []byte{5, 200}, want: []uint8{badPool, badPool}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			d := &decoder{peer: testPID, classify: func(counting bool) reading {
				if asked++; counting != c.counting {
					t.Errorf("counting is %v, want %v", counting, c.counting)
				}
				return c.answer
			}}
			var stream []byte
			for i, typ := range c.types {
				stream = append(stream, allocMsg(0, uint64(i)*32+c.ids, 1, typ).pack(c.size)...)
			}
			events, _, _ := feed(d, drained, stream)
			var got []uint8
			for _, e := range events {
				got = append(got, e.Pool)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
			if asked != c.asked {
				t.Errorf("asked who the client is %d times, want %d", asked, c.asked)
			}
		})
	}
}

// drawMsg makes any one-way message a client might send.
func drawMsg(t *rapid.T) msg {
	return msg{
		typ:        rapid.SampledFrom([]byte{1, 2, 8, 9, 10, 11}).Draw(t, "type"),
		dev:        int32(rapid.IntRange(0, 40).Draw(t, "dev")),
		size:       rapid.Uint64Range(0, 1<<36).Draw(t, "size"),
		bufferType: byte(rapid.IntRange(0, 4).Draw(t, "buffer type")),
		pid:        testPID,
		id:         rapid.Uint64().Draw(t, "id"),
		stamp:      rapid.Uint64().Draw(t, "stamp"),
	}
}

// Any messages of one version, cut anywhere, come out whole and in order.
func TestAnyChunking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{72, 112, 128, 144}).Draw(t, "version")
		var stream []byte
		var want []ledger.Event
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			m := drawMsg(t)
			stream = append(stream, m.pack(size)...)
			want = append(want, ledger.Event{ID: m.id, Size: m.size, Device: m.dev, Op: ops[m.typ]})
		}
		var reads [][]byte
		for rest := stream; len(rest) > 0; {
			n := min(rapid.IntRange(1, 300).Draw(t, "read"), len(rest))
			reads, rest = append(reads, rest[:n]), rest[n:]
		}
		d := newTestDecoder()
		got, reqs, rest := feed(d, eof, reads...)
		for i := range got {
			got[i].Pool = 0
		}
		if diff := cmp.Diff(want, got); diff != "" || len(reqs) > 0 || len(rest) > 0 || d.rejected > 0 {
			t.Fatalf("%d requests, %d bytes left, %d rejected, events (-want +got):\n%s", len(reqs), len(rest), d.rejected, diff)
		}
	})
}

// Noise between messages costs itself, not what follows it.
func TestNoiseBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{72, 112, 128, 144}).Draw(t, "version")
		before, after := allocMsg(1, 64, 10, 0), allocMsg(2, 96, 20, 0)
		noise := rapid.SliceOfN(rapid.ByteRange(13, 255), 1, 400).Draw(t, "noise")
		stream := join(before.pack(size), before.pack(size), noise, after.pack(size), after.pack(size))
		d := newTestDecoder()
		got, _, _ := feed(d, eof, stream)
		if len(got) != 4 || got[2].ID != 96 || got[3].ID != 96 || d.rejected == 0 || d.skipped < uint64(len(noise)) {
			t.Fatalf("events %v, %d rejected, %d skipped", got, d.rejected, d.skipped)
		}
	})
}

// A state that no decoder of ours was in leads to none where it would hang.
func TestSanitize(t *testing.T) {
	for _, d := range []decoder{{mode: locked}, {mode: locked, size: 73}, {mode: filler, size: 144}, {mode: filler, size: -1}, {mode: 99}, {mode: lost}, {mode: locked, size: 72}} {
		t.Run(fmt.Sprintf("mode %d, size %d", d.mode, d.size), func(t *testing.T) {
			d.classify = func(bool) reading { return readingMetal }
			d.peer = testPID
			d.sanitize()
			events, _, _ := feed(&d, eof, join(make([]byte, 150), allocMsg(0, 64, 1, 0).pack(144), allocMsg(0, 64, 1, 0).pack(144)))
			if len(events) != 2 {
				t.Errorf("%d events, want 2", len(events))
			}
		})
	}
}

// Whatever comes in whatever pieces: the decoder makes progress, keeps little
// back, and ends.
func FuzzDecoder(f *testing.F) {
	f.Add(join(allocMsg(0, 64, 1, 3).pack(144), freeMsg(0, 64).pack(72)), uint16(100))
	f.Add([]byte("QUERY_ALL\nGET / HTTP/1.1\r\n\r\n"), uint16(3))
	f.Add(join(packRecord(8, 0, 1, 2, testPID), msg{typ: msgQuery}.pack(120)), uint16(32))
	f.Add(append([]byte{2}, make([]byte, 23)...), uint16(24))
	f.Add([]byte("\n\n"), uint16(1))
	f.Add(join(msg{typ: msgQuery}.pack(50), bytes.Repeat([]byte{0xee}, 400)), uint16(1000))
	f.Add(join(msg{typ: msgKernelLoad, pid: 1}.pack(50), bytes.Repeat([]byte{8, 0, 0, 0}, 400)), uint16(1000))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		d := newTestDecoder()
		var rest []byte
		for reads := 0; ; reads++ {
			n := min(int(cut)+1, len(b))
			rest, b = append(rest, b[:n]...), b[n:]
			end := drained
			if len(b) == 0 {
				end = eof
			} else if reads%3 == 1 {
				end = settled
			}
			limit := len(rest) + 8
			for calls := 0; ; calls++ {
				n, req, _ := d.decode(rest, end)
				if n < 0 || n > len(rest) || calls > limit {
					t.Fatalf("%d of %d bytes consumed in call %d", n, len(rest), calls)
				}
				rest = rest[n:]
				d.events = d.events[:0]
				if req.kind == noRequest {
					break
				}
				if asks := req.kind == askQuery || req.kind == askDeviceInfo; asks != isVersion(req.size) {
					t.Fatalf("request %+v", req)
				}
			}
			if len(rest) >= maxLine {
				t.Fatalf("%d bytes kept back in mode %d", len(rest), d.mode)
			}
			if end == eof {
				return
			}
		}
	})
}
