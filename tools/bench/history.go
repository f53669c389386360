package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// benchHistory measures what remembering costs: CPU and memory of ttmond at
// one snapshot a second, scrapes, and a question to the history. The boards
// are files that do not move, and nobody uses them.
func benchHistory(l *lab) error {
	root := filepath.Join(l.dir, "galaxy")
	if out, err := exec.Command(filepath.Join(l.bin, "ttmon-sim"), "--root", root, "--boards", "32xp150a").CombinedOutput(); err != nil {
		return fmt.Errorf("making boards: %w: %s", err, out)
	}
	for _, on := range []bool{false, true} {
		if err := l.history(root, on); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) history(root string, on bool) error {
	dir := filepath.Join(l.dir, fmt.Sprint("history-", on))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := probe.Addr().String()
	probe.Close()
	config := filepath.Join(dir, "ttmond.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "[history]\nenabled = %v\n", on), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(l.bin, "ttmond"), "--config", config, "--root", root, "--state-dir", filepath.Join(dir, "state"),
		"--socket", filepath.Join(dir, "api"), "--alloc-socket", filepath.Join(dir, "alloc"), "--listen", address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	time.Sleep(5 * time.Second) // the beginning is no measure
	before, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	const seconds = 20
	time.Sleep(seconds * time.Second)
	after, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	resident, err := rss(cmd.Process.Pid)
	if err != nil {
		return err
	}
	word := map[bool]string{false: "without history", true: "with history   "}[on]
	fmt.Printf("%s  %.2f %% of a core, %.1f MB resident\n", word, (after-before).Seconds()/seconds*100, float64(resident)/1e6)
	took, size, err := fetch("http://" + address + "/metrics")
	if err != nil {
		return err
	}
	fmt.Printf("%s  a scrape: %s ms, %d KB\n", word, ms(took), size/1000)
	if !on {
		return nil
	}
	now := time.Now()
	took, size, err = fetch("http://" + address + "/prometheus/api/v1/query_range?" + url.Values{
		"query": {"tenstorrent_device_state"}, "start": {fmt.Sprint(now.Add(-24 * time.Hour).Unix())}, "end": {fmt.Sprint(now.Unix())}, "step": {"300"},
	}.Encode())
	if err != nil {
		return err
	}
	fmt.Printf("%s  a question over a day: %s ms, %d KB\n", word, ms(took), size/1000)
	return nil
}

// fetch asks for a page a few times and returns the best.
func fetch(url string) (best time.Duration, size int, err error) {
	for i := range 5 {
		begun := time.Now()
		r, err := http.Get(url)
		if err != nil {
			return 0, 0, err
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 {
			return 0, 0, fmt.Errorf("%s: %s %s %w", url, r.Status, strings.TrimSpace(string(b[:min(len(b), 200)])), err)
		}
		if took := time.Since(begun); i == 0 || took < best {
			best = took
		}
		size = len(b)
		time.Sleep(100 * time.Millisecond)
	}
	return best, size, nil
}
