package main

import (
	"bufio"
	_ "embed"
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
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed c/reader.c
var readerSource []byte

//go:embed c/writer.c
var writerSource []byte

// benchTTMOND compares the allocation server with the floor: a C program that
// reads the same messages with large reads and does nothing with them.
func benchTTMOND(l *lab) error {
	if err := l.compile("reader", readerSource); err != nil {
		return err
	}
	if err := l.compile("writer", writerSource); err != nil {
		return err
	}
	for _, part := range []func(*lab) error{benchThroughput, benchSteady, benchMillion, benchDeath} {
		if err := part(l); err != nil {
			return err
		}
	}
	return nil
}

// node is a ttmond that is being measured.
type node struct {
	cmd        *exec.Cmd
	alloc, api string
}

func (l *lab) ttmond() (*node, error) {
	return l.ttmondOf(filepath.Join(l.bin, "ttmond"))
}

// ttmondOf starts a ttmond with more flags.
func (l *lab) ttmondOf(bin string, flags ...string) (*node, error) {
	dir, err := os.MkdirTemp(l.dir, "n")
	if err != nil {
		return nil, err
	}
	n := &node{alloc: filepath.Join(dir, "a"), api: filepath.Join(dir, "b")}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	n.cmd = exec.Command(bin, append([]string{"--alloc-socket", n.alloc, "--socket", n.api, "--state-dir", dir, "--root", root}, flags...)...)
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	for range 2000 {
		if _, err := n.events(); err == nil {
			return n, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	n.end()
	return nil, fmt.Errorf("ttmond does not answer at %s", n.api)
}

// takeOver has it executed again, in its place.
func (n *node) takeOver() error {
	out, err := exec.Command(n.cmd.Path, append(slices.Clone(n.cmd.Args[1:]), "--reload")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// pause asks how long clients waited for the last takeover, in s.
func (n *node) pause() (float64, error) {
	for range 2000 {
		var health struct {
			Pause *float64 `json:"takeover_pause_s"`
		}
		if err := n.health(&health); err == nil && health.Pause != nil {
			return *health.Pause, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("the ttmond at %s does not say how long clients waited", n.api)
}

func (n *node) end() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// events asks how many messages have been booked.
func (n *node) events() (uint64, error) {
	var health struct{ Ledger struct{ Events uint64 } }
	err := n.health(&health)
	return health.Ledger.Events, err
}

// health asks how it does.
func (n *node) health(into any) error {
	c, err := net.Dial("unix", n.api)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /v1/health HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	b, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	return json.Unmarshal([]byte(body), into)
}

// awaitEvents waits for as long as more are booked: on a busy machine millions
// take a while.
func (n *node) awaitEvents(want uint64) error {
	most := uint64(0)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		got, err := n.events()
		if err != nil || got >= want {
			return err
		}
		if got > most {
			most, end = got, time.Now().Add(time.Minute)
		}
	}
	return fmt.Errorf("ttmond has booked %d of %d messages, and no more for a minute", most, want)
}

// cpuTime is the processor time of a process so far, to the nanosecond: its
// clock has a number that is made from its pid.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		return 0, fmt.Errorf("asking for the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// stalls is how long writes took, in ns.
type stalls struct{ p50, p99, most float64 }

// write runs writers and returns when all have written everything.
func (l *lab) write(socket string, writers, messages, batch, rate, live int) (s stalls, err error) {
	cmds := make([]*exec.Cmd, writers)
	outs := make([]strings.Builder, writers)
	for i := range cmds {
		cmds[i] = exec.Command(filepath.Join(l.dir, "writer"), socket, fmt.Sprint(messages), fmt.Sprint(batch), fmt.Sprint(rate), fmt.Sprint(live))
		cmds[i].Stdout = &outs[i]
		if err := cmds[i].Start(); err != nil {
			return s, err
		}
	}
	for i, c := range cmds {
		if err := c.Wait(); err != nil {
			return s, fmt.Errorf("writer: %w", err)
		}
		var speed, p50, p99, most float64
		if _, err := fmt.Sscan(outs[i].String(), &speed, &p50, &p99, &most); err != nil {
			return s, err
		}
		s = stalls{max(s.p50, p50), max(s.p99, p99), max(s.most, most)}
	}
	return s, nil
}

// throughput runs one load against one server.
func (l *lab) throughput(floor bool, writers, messages, batch int) (perSecond float64, s stalls, err error) {
	if !floor {
		n, err := l.ttmond()
		if err != nil {
			return 0, s, err
		}
		defer n.end()
		begin := time.Now()
		if s, err = l.write(n.alloc, writers, messages, batch, 0, 0); err == nil {
			err = n.awaitEvents(uint64(writers * messages))
		}
		return float64(writers*messages) / time.Since(begin).Seconds(), s, err
	}
	socket := filepath.Join(l.dir, "floor.sock")
	_ = os.Remove(socket)
	cmd, err := l.startReader(socket, writers)
	if err != nil {
		return 0, s, err
	}
	begin := time.Now()
	if s, err = l.write(socket, writers, messages, batch, 0, 0); err == nil {
		err = cmd.Wait()
	}
	return float64(writers*messages) / time.Since(begin).Seconds(), s, err
}

func (l *lab) startReader(socket string, clients int) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(l.dir, "reader"), socket, fmt.Sprint(clients))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, err = bufio.NewReader(out).ReadString('\n') // "ready"
	return cmd, err
}

func benchThroughput(l *lab) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "writers\tmessages/write\tfloor 1000/s\tttmond 1000/s\tratio\tfloor stall µs p50\tp99\tmax\tttmond p50\tp99\tmax\t")
	for _, c := range []struct{ writers, messages, batch int }{{1, 600_000, 1}, {4, 200_000, 1}, {1, 4_000_000, 32}, {4, 1_500_000, 32}} {
		const rounds = 5
		var speeds [2][]float64
		var worst [2]stalls
		for range rounds {
			for i, floor := range []bool{true, false} {
				speed, s, err := l.throughput(floor, c.writers, c.messages, c.batch)
				if err != nil {
					return err
				}
				speeds[i] = append(speeds[i], speed/1e3)
				worst[i] = stalls{worst[i].p50 + s.p50/rounds/1e3, worst[i].p99 + s.p99/rounds/1e3, max(worst[i].most, s.most/1e3)}
			}
		}
		f, t := middle(speeds[0]), middle(speeds[1])
		fmt.Fprintf(w, "%d\t%d\t%.0f\t%.0f\t%.2f\t%.1f\t%.1f\t%.0f\t%.1f\t%.1f\t%.0f\t\n", c.writers, c.batch, f, t, t/f,
			worst[0].p50, worst[0].p99, worst[0].most, worst[1].p50, worst[1].p99, worst[1].most)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("144-byte messages, alternately ALLOC and FREE. floor: a C program that only reads. Aim: a ratio of 0.8, no stall above 10 ms")
	fmt.Println("that the floor does not have too: more writers than cores wait for each other.")
	return nil
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// benchSteady is the processor time at 100,000 messages a second.
func benchSteady(l *lab) error {
	const rate, seconds = 100_000, 4
	n, err := l.ttmond()
	if err != nil {
		return err
	}
	defer n.end()
	before, err := cpuTime(n.cmd.Process.Pid)
	if err != nil {
		return err
	}
	begin := time.Now()
	s, err := l.write(n.alloc, 1, rate*seconds, 1, rate, 0)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := cpuTime(n.cmd.Process.Pid)
	if err != nil {
		return err
	}
	socket := filepath.Join(l.dir, "floor.sock")
	_ = os.Remove(socket)
	reader, err := l.startReader(socket, 1)
	if err != nil {
		return err
	}
	if _, err := l.write(socket, 1, rate*seconds, 1, rate, 0); err != nil {
		return err
	}
	if err := reader.Wait(); err != nil {
		return err
	}
	u := reader.ProcessState.SysUsage().(*syscall.Rusage)
	floor := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	fmt.Printf("at %d messages/s, one per write: ttmond %.1f %% of a core, floor %.1f %%; stalls of the client p50 %.1f p99 %.1f max %.0f µs. Aim: 20 %%, 10 ms\n",
		rate, 100*(after-before).Seconds()/took.Seconds(), 100*floor.Seconds()/took.Seconds(), s.p50/1e3, s.p99/1e3, s.most/1e3)
	return nil
}

const million = 1_000_000

// hold starts a client that allocates n buffers and keeps them.
func (l *lab) hold(n *node, buffers int) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(l.dir, "writer"), n.alloc, "2", "1", "0", fmt.Sprint(buffers), "0", "stay")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	_ = in // open as long as the command runs
	before, err := n.events()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, n.awaitEvents(before + uint64(buffers) + 2)
}

// query asks for a device's sums on an open connection.
func query(c net.Conn) (dram uint64, err error) {
	f := make([]byte, 144)
	f[0] = 3
	if _, err := c.Write(f); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, f); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(f[40:]), nil
}

// benchMillion is memory and latency with a million live buffers.
func benchMillion(l *lab) error {
	n, err := l.ttmond()
	if err != nil {
		return err
	}
	defer n.end()
	before, err := rss(n.cmd.Process.Pid)
	if err != nil {
		return err
	}
	client, err := l.hold(n, million)
	if err != nil {
		return err
	}
	defer func() {
		_ = client.Process.Kill()
		_ = client.Wait()
	}()
	after, err := rss(n.cmd.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d live buffers: %.1f bytes of resident memory each. Aim: 64\n", million, float64(after-before)/million)
	for _, load := range []string{"idle", "at 100000 messages/s"} {
		var busy *exec.Cmd
		if load != "idle" {
			busy = exec.Command(filepath.Join(l.dir, "writer"), n.alloc, "600000", "1", "100000", "0")
			if err := busy.Start(); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
		took, err := timeQueries(n, 3000)
		if err != nil {
			return err
		}
		if busy != nil {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		}
		fmt.Printf("query with %d live buffers, %s: p50 %.0f p99 %.0f max %.0f µs. Aim: p99 1000\n", million, load, took.p50/1e3, took.p99/1e3, took.most/1e3)
	}
	return nil
}

func timeQueries(n *node, count int) (s stalls, err error) {
	c, err := net.Dial("unix", n.alloc)
	if err != nil {
		return s, err
	}
	defer c.Close()
	took := make([]float64, count)
	for i := range took {
		begin := time.Now()
		if _, err := query(c); err != nil {
			return s, err
		}
		took[i] = float64(time.Since(begin).Nanoseconds())
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	return stalls{took[count/2], took[count*99/100], took[count-1]}, nil
}

func rss(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0, err
	}
	return resident * uint64(os.Getpagesize()), nil
}

// benchDeath is the time from the SIGKILL of a client to its memory being gone.
func benchDeath(l *lab) error {
	for _, c := range []struct{ buffers, rounds int }{{1000, 20}, {million, 3}} {
		n, err := l.ttmond()
		if err != nil {
			return err
		}
		var took []float64
		for range c.rounds {
			t, err := l.death(n, c.buffers)
			if err != nil {
				n.end()
				return err
			}
			took = append(took, t.Seconds()*1e3)
		}
		n.end()
		slices.Sort(took)
		fmt.Printf("from SIGKILL of a client with %d buffers to its memory being gone: median %.2f ms, max %.2f ms. Aim: 10\n", c.buffers, took[len(took)/2], took[len(took)-1])
	}
	return nil
}

func (l *lab) death(n *node, buffers int) (time.Duration, error) {
	client, err := l.hold(n, buffers)
	if err != nil {
		return 0, err
	}
	c, err := net.Dial("unix", n.alloc)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	begin := time.Now()
	_ = client.Process.Kill()
	for {
		dram, err := query(c)
		if err != nil {
			return 0, err
		}
		if dram == 0 {
			break
		}
	}
	took := time.Since(begin)
	_ = client.Wait()
	return took, nil
}
