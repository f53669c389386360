package workload_test

import (
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// message is what a server reads out of the first 40 bytes.
type message struct {
	kind, code byte // kind 1 allocates a buffer, 2 frees one
	device     int32
	size, id   uint64
}

// listen takes one connection and returns its messages as they come; the
// channel closes with the connection.
func listen(t *testing.T, size int) (path string, messages <-chan message) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	out := make(chan message, 1<<16)
	go func() {
		defer close(out)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for b := make([]byte, size); ; {
			if _, err := io.ReadFull(c, b); err != nil {
				return
			}
			out <- message{
				b[0], b[16], int32(binary.LittleEndian.Uint32(b[4:])),
				binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[24:]),
			}
		}
	}()
	return path, out
}

func TestReportHolds(t *testing.T) {
	for _, size := range []string{"72", "112", "128", "144"} {
		t.Run(size, func(t *testing.T) {
			n := map[string]int{"72": 72, "112": 112, "128": 128, "144": 144}[size]
			path, messages := listen(t, n)
			tr := start(t, "n300", "name=old,kind=report,dram=1G,l1=3M,trace=1M,cb=64K,kernel=8K,buffers=3,batch=4,message="+size+",socket="+path)
			held := map[int32]map[[2]byte]uint64{}
			for range 2 * 5 * 3 { // chips, amounts, buffers
				select {
				case m := <-messages:
					if held[m.device] == nil {
						held[m.device] = map[[2]byte]uint64{}
					}
					held[m.device][[2]byte{m.kind, m.code}] += m.size
				case <-time.After(time.Minute):
					t.Fatal("too few messages")
				}
			}
			tr.Close()
			want := map[[2]byte]uint64{{1, 0}: 1 << 30, {1, 1}: 3 << 20, {1, 4}: 1 << 20, {8, 0}: 64 << 10, {10, 0}: 8 << 10}
			for _, device := range []int32{0, 1} {
				for key, bytes := range want {
					if held[device][key] != bytes {
						t.Errorf("device %d, message %v: %d bytes, want %d", device, key, held[device][key], bytes)
					}
				}
			}
		})
	}
}

// TestReportChurns: what is allocated is freed again, one after the other.
func TestReportChurns(t *testing.T) {
	path, messages := listen(t, 144)
	tr := start(t, "n150", "name=old,kind=report,rate=20000,batch=8,size=4K,socket="+path)
	live := map[uint64]bool{}
	for range 1000 {
		select {
		case m := <-messages:
			if m.kind == 1 && (live[m.id] || m.size != 4096) || m.kind == 2 && !live[m.id] {
				t.Fatalf("message %+v with live %v", m, live[m.id])
			}
			live[m.id] = m.kind == 1
		case <-time.After(time.Minute):
			t.Fatal("too few messages")
		}
	}
	tr.Close()
	for range messages { // until its end: the workload is gone
	}
}

func TestReportDies(t *testing.T) {
	path, messages := listen(t, 144)
	tr := start(t, "n150", "name=old,kind=report,dram=1M,die=50ms,socket="+path)
	defer tr.Close()
	n := 0
	for range messages {
		n++
	}
	if n != 1 {
		t.Errorf("%d messages before its death, want 1", n)
	}
}

func TestReportSettings(t *testing.T) {
	for procs, want := range map[string]string{
		"kind=report,message=100":            "72, 112, 128 or 144",
		"kind=report,drma=1G":                `no setting "drma"`,
		"kind=report,rate=fast":              "rate=fast",
		"kind=report,batch=0":                "from 1 to",
		"kind=report,socket=/nowhere/at/all": "connecting to the allocation server",
	} {
		t.Run(procs, func(t *testing.T) {
			if why := refused(t, "n150", procs); !strings.Contains(why, want) {
				t.Errorf("%s, want %q", why, want)
			}
		})
	}
}
