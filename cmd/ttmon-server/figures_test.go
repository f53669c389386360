package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figuresVar has TestAttackFigures print its table: TTMOND_FIGURES=1 go test ./cmd/ttmon-server -run TestAttackFigures.
const figuresVar = "TTMOND_FIGURES"

// What each attack, alone, does to root's queries, to scrapes and to the server's
// memory.
func TestAttackFigures(t *testing.T) {
	if os.Getenv(figuresVar) == "" {
		t.Skip("it only measures, where TTMOND_FIGURES is set")
	}
	fmt.Printf("FIGURE %-12s %30s %30s %7s\n", "ttmon-server", "query ms: p50, p99, max", "scrape ms: p50, p99, max", "MiB")
	for _, name := range []string{"nothing", "queries", "half-open"} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.simulate("n300,p150a")
			address := freePort(t)
			i := h.start("--listen", address)
			h.await("the history", func() bool { return h.samples() > 0 })
			h.await("HTTP", func() bool { return strings.Contains(i.log.String(), "serving HTTP") })
			for uid := range 2 {
				if name != "nothing" {
					h.play(h.player(uint32(60000+uid), name, h.server, address, ""))
				}
			}
			var queries, scrapes []time.Duration
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
				began := time.Now()
				if status, body := h.get("/prometheus/api/v1/query?query=vector(1)"); status != 200 {
					t.Fatalf("root's query: %d %s", status, body)
				}
				queries = append(queries, time.Since(began))
				began = time.Now()
				if _, err := scrape("http://" + address + "/metrics"); err != nil {
					t.Fatalf("scrape: %v", err)
				}
				scrapes = append(scrapes, time.Since(began))
			}
			fmt.Printf("FIGURE %-12s %s %s %7d\n", name, spread(queries), spread(scrapes), peakMebibytes(i.cmd.Process.Pid))
		})
	}
}

// spread is the median, the 99th percentile and the most, in milliseconds.
func spread(list []time.Duration) string {
	slices.Sort(list)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	return fmt.Sprintf("%10.2f %9.2f %9.2f", ms(list[len(list)/2]), ms(list[len(list)*99/100]), ms(list[len(list)-1]))
}

// peakMebibytes is the most memory that a process has had.
func peakMebibytes(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(words[0])
	return n >> 10
}
