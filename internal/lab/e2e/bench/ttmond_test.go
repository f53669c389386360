package bench

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ttmond is one that is being measured.
type ttmond struct {
	b          *testing.B
	writer     string // see testdata/writer.c
	cmd        *exec.Cmd
	alloc, api string
}

func startTTMOND(b *testing.B) *ttmond {
	b.Helper()
	dir := b.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		b.Fatal(err)
	}
	d := &ttmond{b: b, writer: compiled(b, "writer"), alloc: filepath.Join(dir, "a"), api: filepath.Join(dir, "b")}
	d.cmd = started(b, exec.Command(filepath.Join(bin, "ttmond"), "--alloc-socket", d.alloc, "--socket", d.api, "--state-dir", dir, "--root", root))
	for {
		c, err := net.Dial("unix", d.api)
		if err == nil {
			c.Close()
			return d
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// health is what it says of itself.
type health struct {
	Ledger struct{ Events uint64 } // messages that have been booked
	Pause  *float64                `json:"takeover_pause_s"` // how long clients waited for the last takeover
}

func (d *ttmond) health() (h health) {
	d.b.Helper()
	c, err := net.Dial("unix", d.api)
	if err != nil {
		d.b.Fatal(err)
	}
	defer c.Close()
	_, err = io.WriteString(c, "GET /v1/health HTTP/1.0\r\n\r\n")
	if err != nil {
		d.b.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		d.b.Fatal(err)
	}
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	if err := json.Unmarshal([]byte(body), &h); err != nil {
		d.b.Fatal(err)
	}
	return h
}

// booked waits until so many messages have been booked.
func (d *ttmond) booked(want uint64) {
	for d.health().Ledger.Events < want {
		time.Sleep(time.Millisecond)
	}
}

// write is a client that sends messages, so many in a write and so many a second, or as
// fast as it can (0).
func (d *ttmond) write(messages, batch, rate, live int, more ...string) *exec.Cmd {
	args := []string{d.alloc}
	for _, n := range []int{messages, batch, rate, live} {
		args = append(args, fmt.Sprint(n))
	}
	return exec.Command(d.writer, append(args, more...)...)
}

// hold has a client that allocates buffers and keeps them.
func (d *ttmond) hold(buffers int) *exec.Cmd {
	d.b.Helper()
	before := d.health().Ledger.Events
	cmd := d.write(2, 1, 0, buffers, "0", "stay")
	if _, err := cmd.StdinPipe(); err != nil { // open as long as the command runs
		d.b.Fatal(err)
	}
	started(d.b, cmd)
	d.booked(before + uint64(buffers) + 2)
	return cmd
}

// reader is the floor in the place of ttmond: a C program that reads what one client
// sends with large reads, and does nothing with it.
func reader(b *testing.B) (cmd *exec.Cmd, socket string) {
	b.Helper()
	socket = filepath.Join(b.TempDir(), "s")
	cmd = exec.Command(compiled(b, "reader"), socket, "1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	started(b, cmd)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // "ready"
		b.Fatal(err)
	}
	return cmd, socket
}

// BenchmarkMessages is what a message of 144 bytes costs, alternately of an allocation
// and of a free, next to a program that only reads them: as fast as one client sends
// them, in a write of its own and 32 in one, and at 100,000 a second. stall is how long
// a write of the client takes. Aim: a ratio of 0.8, no stall above 10 ms that the floor
// does not have too, 20 % of a core.
func BenchmarkMessages(b *testing.B) {
	for _, c := range []struct{ batch, rate int }{{1, 0}, {32, 0}, {1, 100_000}} {
		name := fmt.Sprintf("batch=%d,rate=%d", c.batch, c.rate)
		b.Run(name+"/floor", func(b *testing.B) {
			floor, socket := reader(b)
			client := &ttmond{b: b, writer: compiled(b, "writer"), alloc: socket}
			b.ResetTimer()
			client.sends(c.batch, c.rate)
			if err := floor.Wait(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(used(floor).Seconds()/b.Elapsed().Seconds()*100, "%core")
		})
		b.Run(name+"/ttmond", func(b *testing.B) {
			d := startTTMOND(b)
			before := cpuTime(b, d.cmd.Process.Pid)
			b.ResetTimer()
			d.booked(d.sends(c.batch, c.rate))
			b.ReportMetric((cpuTime(b, d.cmd.Process.Pid)-before).Seconds()/b.Elapsed().Seconds()*100, "%core")
		})
	}
}

// sends has a client send about b.N messages, whole writes of them, and returns how many.
func (d *ttmond) sends(batch, rate int) (messages uint64) {
	n := max(1, d.b.N/batch) * batch
	out, err := d.write(n, batch, rate, 0).Output()
	if err != nil {
		d.b.Fatal(err)
	}
	var speed, median, late, most float64
	if _, err := fmt.Sscan(string(out), &speed, &median, &late, &most); err != nil {
		d.b.Fatal(err)
	}
	d.b.ReportMetric(median, "p50-stall-ns")
	d.b.ReportMetric(late, "p99-stall-ns")
	d.b.ReportMetric(most, "most-stall-ns")
	return uint64(n)
}

const million = 1_000_000

// query asks for what is used of a device on an open connection.
func query(b *testing.B, c net.Conn) (dram uint64) {
	b.Helper()
	f := make([]byte, 144)
	f[0] = 3
	_, err := c.Write(f)
	if err == nil {
		_, err = io.ReadFull(c, f)
	}
	if err != nil {
		b.Fatal(err)
	}
	return binary.LittleEndian.Uint64(f[40:])
}

func (d *ttmond) dial() net.Conn {
	d.b.Helper()
	c, err := net.Dial("unix", d.alloc)
	if err != nil {
		d.b.Fatal(err)
	}
	d.b.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkQuery is how long a client waits for what is used while a million buffers are
// live, and what one of them takes of ttmond's memory. Aim: 1 ms for 99 of 100; 64 bytes.
func BenchmarkQuery(b *testing.B) {
	for _, load := range []string{"idle", "100000 messages per second"} {
		b.Run(load, func(b *testing.B) {
			d := startTTMOND(b)
			before := resident(b, d.cmd.Process.Pid)
			d.hold(million)
			buffer := (resident(b, d.cmd.Process.Pid) - before) / million
			if load != "idle" {
				started(b, d.write(100*million, 1, 100_000, 0))
			}
			c := d.dial()
			var took []float64
			for b.Loop() {
				begin := time.Now()
				query(b, c)
				took = append(took, float64(time.Since(begin).Nanoseconds()))
			}
			slices.Sort(took)
			b.ReportMetric(buffer, "B/buffer")
			b.ReportMetric(took[len(took)*99/100], "p99-ns")
			b.ReportMetric(took[len(took)-1], "most-ns")
		})
	}
}

// BenchmarkDeath is the time from the SIGKILL of a client to its memory being gone. Aim:
// 10 ms.
func BenchmarkDeath(b *testing.B) {
	for _, buffers := range []int{1000, million} {
		b.Run(fmt.Sprintf("buffers=%d", buffers), func(b *testing.B) {
			d := startTTMOND(b)
			c := d.dial()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				client := d.hold(buffers)
				b.StartTimer()
				_ = client.Process.Kill()
				for query(b, c) > 0 {
				}
			}
		})
	}
}

// BenchmarkTakeover is how long clients wait while another ttmond takes over, with so
// many buffers and 100,000 messages a second. Aim: 100 ms at a million.
func BenchmarkTakeover(b *testing.B) {
	for _, buffers := range []int{1000, million, 4 * million} {
		b.Run(fmt.Sprintf("buffers=%d", buffers), func(b *testing.B) {
			d := startTTMOND(b)
			d.hold(buffers)
			started(b, d.write(100*million, 1, 100_000, 0)) // reports meanwhile
			var pauses []float64
			for b.Loop() {
				if out, err := exec.Command(d.cmd.Path, append(slices.Clone(d.cmd.Args[1:]), "--reload")...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				h := d.health()
				for h.Pause == nil {
					h = d.health()
				}
				pauses = append(pauses, *h.Pause*1e3)
			}
			slices.Sort(pauses)
			b.ReportMetric(pauses[len(pauses)/2], "p50-pause-ms")
			b.ReportMetric(pauses[len(pauses)-1], "most-pause-ms")
		})
	}
}
