package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// Each row of the list of old clients, as a real process.

func TestCppClients(t *testing.T) {
	for _, size := range []int{72, 112, 144} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			h := newHost(t)
			h.start()
			c := h.cpp(size)
			for _, line := range []string{
				"alloc 0 4194304 1000 0", "alloc 0 4194336 200 1", "alloc 0 4194368 30 3", "alloc 0 4194400 4 4",
				"alloc 0 4194432 5000 2", // host memory: in no pool of a device
				"alloc 31 4194304 7 0", "alloc 0 4194464 999 0", "free 0 4194464",
			} {
				if got := c.do("%s", line); got != "ok" {
					t.Fatalf("%s: %q", line, got)
				}
			}
			h.awaitSums(0, sums{dram: 1000, l1: 200, l1Small: 30, trace: 4})
			h.awaitSums(31, sums{dram: 7})
			// Its viewer, in the same version.
			want := "4 0 1000 200 30 4"
			if got := c.do("query 0"); got != want && !strings.HasPrefix(got, want+" ") {
				t.Errorf("the reply of %d bytes says %q, want %q", size, got, want)
			}
			c.kill()
			h.awaitSums(0, sums{})
		})
	}
}

func TestCppCircularBuffersAndKernels(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	for _, line := range []string{
		"cb_alloc 0 102400 1000", "cb_alloc 0 103424 500", "cb_free 0 103424 500",
		"load 0 140000000001 2000 0", "load 0 140000000002 56000 1",
	} {
		c.do("%s", line)
	}
	h.awaitSums(0, sums{cb: 1000, kernel: 58000})
	if got := c.do("query 0"); !strings.HasPrefix(got, "4 0 0 0 0 0 1000 58000 ") {
		t.Errorf("reply %q", got)
	}
}

func TestPythonClients(t *testing.T) {
	for _, kind := range []string{"client72", "client112"} {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t)
			h.start()
			c := h.python(kind)
			// Its types are 0 DRAM, 1 L1, 2 L1_SMALL, 3 TRACE.
			for i, line := range []string{"alloc 0 1000 0", "alloc 0 200 1", "alloc 0 30 2", "alloc 5 4 3"} {
				if got := c.do("%s", line); got != fmt.Sprint(i+1) {
					t.Fatalf("%s: %q", line, got)
				}
			}
			if got := c.do("query 0"); got != "1000 200 30 0" {
				t.Errorf("device 0: %q", got)
			}
			if got := c.do("query 5"); got != "0 0 0 4" {
				t.Errorf("device 5: %q", got)
			}
			c.do("free 4") // it says device 0
			c.do("free 1")
			h.awaitSums(5, sums{})
			h.awaitSums(0, sums{l1: 200, l1Small: 30})
			if kind == "client112" {
				// total_dram … num_devices; without boards there are none.
				if got := c.do("info -1"); got != "0 0 0 0 0 0 1 0" {
					t.Errorf("device count: %q", got)
				}
				if got := c.do("info 3"); got != "0 0 0 0 0 0 0 0" {
					t.Errorf("device that is not there: %q", got)
				}
			}
		})
	}
}

func TestDumpRemaining(t *testing.T) {
	h := newHost(t)
	i := h.start()
	c := h.cpp(144)
	c.do("alloc 3 4194304 2048 0")
	h.awaitSums(3, sums{dram: 2048})
	h.runPython("dump_remaining")
	h.await("the dump in the log", func() bool { return strings.Contains(i.log.String(), "kind=remaining") })
	for _, want := range []string{"device 3", "DRAM", "1 buffers", "0x400000", fmt.Sprintf("pid %d", c.pid())} {
		if !strings.Contains(i.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, i.log)
		}
	}
}

func TestSnippets(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	c.do("alloc 2 4194304 77 1")
	c.do("load 2 99 10 0")
	h.awaitSums(0, sums{dram: 1000})
	h.awaitSums(2, sums{l1: 77, kernel: 10})

	if got := h.runPython("query_stats", "2"); got != "0 77 0 0" {
		t.Errorf("query_stats: %q", got)
	}
	if got := h.runPython("broken_query"); !strings.HasPrefix(got, "112\nfailed:") {
		t.Errorf("the broken snippet gets %q, want 112 bytes, with which it fails by itself", got)
	}
	if got := h.runPython("device_count"); !strings.HasPrefix(got, "128 ") {
		t.Errorf("the device count of the README: %q", got)
	}
	if got := h.runPython("realtime_monitor"); got != "0 1 1000 0 0 0\n2 2 0 77 0 0" {
		t.Errorf("realtime_monitor: %q", got)
	}
	got := h.runPython("query_all")
	if !strings.Contains(got, fmt.Sprintf("0 DRAM 0x400000 1000 %d", c.pid())) || strings.Count(got, "\n") < 3 {
		t.Errorf("QUERY_ALL: %q", got)
	}
	h.runPython("probe")

	helper := h.python("helpers", "8:1:4096:0x19000", "10:1:2000:5", "8:1:100:0x1a000", "9:1:100:0x1a000")
	h.awaitSums(1, sums{cb: 4096, kernel: 2000})
	helper.kill()
	h.awaitSums(1, sums{})
	h.awaitSums(0, sums{dram: 1000})
}

// `echo "" | nc -U`: some versions of nc end their side, others wait.
func TestBlankLine(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	for _, ends := range []bool{true, false} {
		conn := h.dial()
		if _, err := conn.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if ends {
			_ = conn.(*net.UnixConn).CloseWrite()
		}
		text, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(text), "0x400000") {
			t.Errorf("ends %v: %q, %v", ends, text, err)
		}
		conn.Close()
	}
	h.awaitSums(0, sums{dram: 1000}) // no kernel of 0 bytes was booked
}

// A viewer of one version, another of the next, and reporters between them,
// all at once on the one socket.
func TestAllVersionsAtOnce(t *testing.T) {
	h := newHost(t)
	h.start()
	var clients []*client
	for _, size := range []int{72, 112, 144} {
		clients = append(clients, h.cpp(size))
	}
	for round := range 20 {
		for i, c := range clients {
			c.do("alloc %d %d 100 0", i, 4194304+64*round)
		}
	}
	for j := range clients {
		h.awaitSums(int32(j), sums{dram: 2000})
	}
	for i, c := range clients {
		for j := range clients {
			want := fmt.Sprintf("4 %d 2000 0 0 0", j)
			if got := c.do("query %d", j); !strings.HasPrefix(got+" ", want+" ") {
				t.Errorf("client %d about device %d: %q, want %q", i, j, got, want)
			}
		}
	}
}
