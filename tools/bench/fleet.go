package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// benchFleet asks a real Prometheus with 1,000 hosts of 32 chips for what
// `ttmon fleet` shows. The samples are made up, and written as blocks.
func benchFleet(l *lab) error {
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			fmt.Println("there is no " + name + ": it comes with Debian's package prometheus")
			return nil
		}
	}
	dir := filepath.Join(l.dir, "fleet")
	if err := writeFleet(dir, time.Now()); err != nil {
		return err
	}
	address, stop, err := startPrometheus(dir)
	if err != nil {
		return err
	}
	defer stop()
	base := "http://" + address
	for _, q := range []struct{ what, expr string }{
		{"states of all chips by host", "sum by (host, state) (tenstorrent_devices_in_state)"},
		{"memory of all chips by host", `sum by (host) (tenstorrent_memory_used_bytes{pool="dram"})`},
		{"chips of 50 hosts", `tenstorrent_device_state{host=~"node00[0-4].*"} == 1`},
	} {
		took, size, err := fetch(base + "/api/v1/query?query=" + url.QueryEscape(q.expr))
		if err != nil {
			return err
		}
		fmt.Printf("%-32s %8s ms, %d KB\n", q.what, ms(took), size/1000)
	}
	best := time.Duration(0)
	for i := range 3 {
		begun := time.Now()
		out, err := exec.Command(filepath.Join(l.bin, "ttmon"), "fleet", "--once", "--prometheus", base).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ttmon fleet: %w\n%s", err, out)
		}
		if took := time.Since(begun); i == 0 || took < best {
			best = took
		}
	}
	fmt.Printf("%-32s %8s ms for %d hosts with %d chips\n", "ttmon fleet --once, all of it", ms(best), fleetHosts, fleetHosts*fleetChips)
	return nil
}

// writeFleet makes the data folder of a Prometheus.
func writeFleet(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := filepath.Join(dir, "fleet.om")
	f, err := os.Create(text)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	at := now.Unix()
	each := func(name string, line func(host, chip int)) {
		fmt.Fprintf(w, "# TYPE %s gauge\n", name)
		for h := range fleetHosts {
			for c := range fleetChips {
				line(h, c)
			}
		}
	}
	labels := func(h, c int) string {
		return fmt.Sprintf(`host="node%04d",device="%d",pci="0000:%02x:00.0"`, h, c, c+1)
	}
	each("tenstorrent_device_state", func(h, c int) {
		for _, state := range []string{"ok", "resetting", "hung", "lost", "unknown"} {
			is := state == "ok" && (h%100 != 7 || c != 3) || state == "hung" && h%100 == 7 && c == 3
			fmt.Fprintf(w, "tenstorrent_device_state{%s,state=%q} %d %d\n", labels(h, c), state, map[bool]int{true: 1}[is], at)
		}
	})
	for name, value := range map[string]float64{"tenstorrent_asic_temperature_celsius": 55, "tenstorrent_core_power_watts": 120} {
		each(name, func(h, c int) { fmt.Fprintf(w, "%s{%s} %g %d\n", name, labels(h, c), value+float64(h%30), at) })
	}
	for name, value := range map[string]float64{"tenstorrent_memory_used_bytes": 8 << 30, "tenstorrent_memory_size_bytes": 32 << 30, "tenstorrent_memory_used_bound": 1} {
		each(name, func(h, c int) { fmt.Fprintf(w, "%s{%s,pool=\"dram\"} %g %d\n", name, labels(h, c), value, at) })
	}
	for name, value := range map[string]int{"tenstorrent_devices": fleetChips, "tenstorrent_simulated": 1} {
		fmt.Fprintf(w, "# TYPE %s gauge\n", name)
		for h := range fleetHosts {
			fmt.Fprintf(w, "%s{host=\"node%04d\"} %d %d\n", name, h, value, at)
		}
	}
	fmt.Fprintln(w, "# TYPE tenstorrent_devices_in_state gauge")
	for h := range fleetHosts {
		hung := map[bool]int{true: 1}[h%100 == 7]
		for state, n := range map[string]int{"ok": fleetChips - hung, "resetting": 0, "hung": hung, "lost": 0, "unknown": 0} {
			fmt.Fprintf(w, "tenstorrent_devices_in_state{host=\"node%04d\",state=%q} %d %d\n", h, state, n, at)
		}
	}
	fmt.Fprintln(w, "# EOF")
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", text, filepath.Join(dir, "data")).CombinedOutput()
	_ = os.Remove(text)
	if err != nil {
		return fmt.Errorf("writing blocks: %w\n%s", err, out)
	}
	return nil
}

// startPrometheus starts a real one on a data folder.
func startPrometheus(dir string) (address string, stop func(), err error) {
	if address, err = freeAddress(); err != nil {
		return "", nil, err
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1m}\n"), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address,
		"--log.level=error", "--query.lookback-delta=2h")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get("http://" + address + "/-/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return address, stop, nil
			}
		}
	}
	stop()
	return "", nil, fmt.Errorf("the engine (Prometheus) is not ready after a minute")
}
