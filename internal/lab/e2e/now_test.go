package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// everyMinute adds to a configuration that snapshots are made once a minute: what a test
// sees sooner was made for it.
func everyMinute(t *testing.T, path string) string {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\n[collect]\ninterval = \"1m\"\n"); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFirstLookIsOfNow: who looks once sees what a program holds now, not what it held
// when ttmond made its last snapshot; and no program that has exited.
func TestFirstLookIsOfNow(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	d := startDaemon(t, h, "--config", everyMinute(t, watchingFromTheStart(t)))
	d.mustWatch()
	j := play(t, h, ttnn.Newest, true)
	do := func(s ttnn.Step) {
		t.Helper()
		if _, err := j.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	do(ttnn.Step{"do": "open", "l1_small": 32768, "trace": 1 << 20})
	for n := range 8 {
		do(ttnn.Step{"do": "alloc", "name": fmt.Sprint(n), "pool": "dram", "bytes": 16 << 20})
		seen := snapshot(t, h, "--daemon", d.api)
		view, err := j.Do(ttnn.Step{"do": "view"})
		if err != nil {
			t.Fatal(err)
		}
		if err := isExact(seen, j, view.View); err != nil {
			t.Errorf("after allocation %d: %v", n+1, err)
		}
	}
	if err := j.End(); err != nil {
		t.Fatal(err)
	}
	for _, p := range snapshot(t, h, "--daemon", d.api).Processes {
		t.Errorf("listed after its exit: %+v", p)
	}
}

// TestAsFastAsAsked: a client that watches is sent snapshots as often as it asks for
// them, also where ttmond makes them more seldom; one that does not say so is not sent
// those of others.
func TestAsFastAsAsked(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	config := t.TempDir() + "/ttmond.toml"
	if err := os.WriteFile(config, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, h, "--config", everyMinute(t, config))
	snapshots := func(query string) *bufio.Scanner {
		t.Helper()
		resp, err := d.client(d.api).Get("http://ttmond/v1/watch" + query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		s := bufio.NewScanner(resp.Body)
		s.Buffer(nil, 16<<20)
		return s
	}
	next := func(s *bufio.Scanner) time.Time {
		t.Helper()
		for s.Scan() {
			if body, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				snap, err := wire.Decode([]byte(body))
				if err != nil {
					t.Fatal(err)
				}
				return snap.Time
			}
		}
		t.Fatalf("the stream ended: %v", s.Err())
		return time.Time{}
	}
	usual := snapshots("")
	first := next(usual)
	got := make(chan time.Time)
	go func() {
		defer close(got)
		for usual.Scan() {
			if strings.HasPrefix(usual.Text(), "data: ") {
				got <- time.Now()
			}
		}
	}()
	fast := snapshots("?interval=100ms")
	last := next(fast)
	for range 5 {
		now := next(fast)
		if !now.After(last) {
			t.Errorf("the same snapshot twice, of %v", now)
		}
		last = now
	}
	select {
	case <-got:
		t.Errorf("a client that watches as usual was sent one that another wanted, after that of %v", first)
	default:
	}
	cmd := h.Command(t.Context(), filepath.Join(bin, "ttmon"), "smi", "--json", "--loop-ms", "100", "--daemon", d.api)
	lines, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	seen := map[time.Time]bool{}
	for loop := bufio.NewReader(lines); len(seen) < 5; {
		line, err := loop.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		snap, err := wire.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		seen[snap.Time] = true
	}
}
