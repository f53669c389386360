package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/fleet/sums"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// benchFleet asks a real Prometheus for what `ttmon fleet` and the page show: with
// 1,000 hosts of 32 chips, without and with the recorded sums, and with the sums of
// 10,000 hosts. The samples are made up, and written as blocks.
func benchFleet(l *lab) error {
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			fmt.Println(name + " is missing: it comes with Debian's package prometheus")
			return nil
		}
	}
	if err := seriesOfHost(); err != nil {
		return err
	}
	for _, f := range []madeFleet{
		{name: "1,000 hosts, no rules", hosts: fleetHosts, devices: fleetHosts},
		{name: "1,000 hosts, sums recorded", hosts: fleetHosts, devices: fleetHosts, recorded: true},
		{name: "10,000 hosts, sums recorded", hosts: 10 * fleetHosts, devices: 100, recorded: true},
	} {
		if err := f.measure(l); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	fmt.Println("Of the 10,000 hosts all have their sums, and 100 of them their devices: what is in view.")
	return nil
}

// seriesOfHost prints how many series a host has, and what a scrape of it is.
func seriesOfHost() error {
	for _, devices := range []int{1, 8, 32} {
		s := tuitest.Host(devices, 7)
		w := prom.NewWalker(prom.Options{Version: "bench"})
		w.Observe(s)
		page, n := &prom.Page{}, 0
		w.Walk(s, nil, func(f *prom.Family, labels prom.Labels, v float64) {
			page.Add(f, labels, v)
			n++
		})
		fmt.Printf("a host with %2d devices: %5d series, %d KB a scrape; %d recorded sums\n", devices, n, len(page.Bytes())/1000, len(sums.All()))
	}
	return nil
}

// madeFleet is a fleet that is made up.
type madeFleet struct {
	name     string
	hosts    int
	devices  int  // hosts of which single devices are there
	recorded bool // the sums of all hosts are there
}

func (f *madeFleet) measure(l *lab) error {
	dir := filepath.Join(l.dir, fmt.Sprintf("fleet-%d-%v", f.hosts, f.recorded))
	begun := time.Now()
	n, err := f.write(dir, begun)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%s: %d series, written in %.0f s, %.0f MB on disk\n", f.name, n, time.Since(begun).Seconds(), float64(treeSize(filepath.Join(dir, "data")))/1e6)
	address, stop, err := startPrometheus(dir)
	if err != nil {
		return err
	}
	defer stop()
	base := "http://" + address
	from := sums.Devices
	if f.recorded {
		from = sums.Recorded
	}
	for _, q := range []struct{ what, expr string }{
		{"conditions of all hosts", sums.Conditions().Query("host", from)},
		{"memory of all hosts", sums.Field(sums.Used, "sum").Query("host", from)},
		{"devices of 50 hosts", `{__name__=~"tenstorrent_device_(condition|state)",host=~"node000[0-4].*"} == 1`},
	} {
		took, size, err := fetch(base + "/api/v1/query?query=" + url.QueryEscape(q.expr))
		if err != nil {
			return err
		}
		fmt.Printf("  %-32s %8s ms, %d KB\n", q.what, ms(took), size/1000)
	}
	best := time.Duration(0)
	for i := range 3 {
		begun := time.Now()
		out, err := exec.Command(filepath.Join(l.bin, "ttmon"), "fleet", "--once", "--prometheus", base).CombinedOutput()
		if err != nil || !strings.Contains(string(out), fmt.Sprintf("\n%d hosts", f.hosts)) {
			return fmt.Errorf("ttmon fleet: %w\n%.2000s", err, out)
		}
		if took := time.Since(begun); i == 0 || took < best {
			best = took
		}
	}
	fmt.Printf("  %-32s %8s ms\n", "ttmon fleet --once, all of it", ms(best))
	return f.page(l, base)
}

// page asks for the first screen of the page.
func (f *madeFleet) page(l *lab, engine string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(l.bin, "ttmon-server"), "fleet", "--prometheus", engine, "--listen", address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get("http://" + address + "/api/v1/version"); err == nil {
			r.Body.Close()
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("the page does not answer")
		}
	}
	cells := url.Values{}
	for h := range 50 {
		cells.Add("host", fmt.Sprintf("node%05d", h))
	}
	for _, q := range []struct{ what, path string }{{"the page: all hosts", "fleet"}, {"the page: devices of 50 hosts", "fleet/cells?" + cells.Encode()}} {
		begun := time.Now() // once: the second answer is the first one, kept
		r, err := http.Get("http://" + address + "/api/v1/" + q.path)
		if err != nil {
			return err
		}
		n, err := r.Body.Read(make([]byte, 1))
		r.Body.Close()
		if err != nil && n == 0 || r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", q.path, r.Status)
		}
		fmt.Printf("  %-32s %8s ms\n", q.what, ms(time.Since(begun)))
	}
	return nil
}

// maker writes samples in the text form of OpenMetrics.
type maker struct {
	w      *bufio.Writer
	series int
}

// each writes a family: line writes the labels and the value of each of its series.
// A sample is there again and again, so that it is fresh while it is asked for.
func (m *maker) each(name string, from time.Time, every time.Duration, lines func(add func(labels string, v float64))) {
	fmt.Fprintf(m.w, "# TYPE %s gauge\n", name)
	lines(func(labels string, v float64) {
		m.series++
		for at := from; at.Before(from.Add(12 * time.Minute)); at = at.Add(every) {
			fmt.Fprintf(m.w, "%s{%s} %g %d\n", name, labels, v, at.Unix())
		}
	})
}

// write makes the data folder of a Prometheus, and returns how many series it has.
func (f *madeFleet) write(dir string, now time.Time) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	text := filepath.Join(dir, "fleet.om")
	file, err := os.Create(text)
	if err != nil {
		return 0, err
	}
	m := &maker{w: bufio.NewWriterSize(file, 1<<20)}
	f.writeDevices(m, now)
	f.writeHosts(m, now)
	if f.recorded {
		f.writeSums(m, now)
	}
	fmt.Fprintln(m.w, "# EOF")
	if err := m.w.Flush(); err != nil {
		return 0, err
	}
	if err := file.Close(); err != nil {
		return 0, err
	}
	out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", text, filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("promtool: %w\n%s", err, out)
	}
	return m.series, os.Remove(text)
}

// rare is how often the samples of devices are repeated: once, since this engine
// looks back far enough.
const rare = time.Hour

func (f *madeFleet) writeDevices(m *maker, now time.Time) {
	each := func(name, more string, v func(h, c int) float64) {
		m.each(name, now, rare, func(add func(string, float64)) {
			for h := range f.devices {
				for c := range fleetChips {
					add(fmt.Sprintf(`host="node%05d",device="%d",pci="0000:%02x:00.0"%s`, h, c, c+1, more), v(h, c))
				}
			}
		})
	}
	m.each("tenstorrent_device_condition", now, rare, func(add func(string, float64)) {
		for h := range f.devices {
			for c := range fleetChips {
				for _, kind := range []string{"hung", "lost", "throttled", "hot", "slow_link", "link_down", "resetting"} {
					add(fmt.Sprintf(`host="node%05d",device="%d",pci="0000:%02x:00.0",condition=%q`, h, c, c+1, kind), map[bool]float64{true: 1}[kind == "hung" && h%100 == 7 && c == 3])
				}
			}
		}
	})
	each("tenstorrent_device_state", `,state="ok"`, func(_, _ int) float64 { return 1 })
	each("tenstorrent_asic_temperature_celsius", "", func(h, c int) float64 { return float64(45 + (h*7+c)%30) })
	each("tenstorrent_core_power_watts", "", func(h, c int) float64 { return float64(80 + (h+c*3)%60) })
	each("tenstorrent_busy_ratio", "", func(h, c int) float64 { return float64((h+c)%10) / 10 })
	each("tenstorrent_busy_bound", "", func(_, _ int) float64 { return 0 })
	each("tenstorrent_memory_used_bytes", `,pool="dram"`, func(h, _ int) float64 { return float64(8<<30 + h) })
	each("tenstorrent_memory_size_bytes", `,pool="dram"`, func(_, _ int) float64 { return 32 << 30 })
	each("tenstorrent_memory_used_bound", `,pool="dram"`, func(_, _ int) float64 { return 1 })
}

// writeHosts writes what a host has once.
func (f *madeFleet) writeHosts(m *maker, now time.Time) {
	each := func(name string, lines func(h int, add func(more string, v float64))) {
		m.each(name, now, rare, func(add func(string, float64)) {
			for h := range f.hosts {
				lines(h, func(more string, v float64) { add(fmt.Sprintf(`host="node%05d"%s`, h, more), v) })
			}
		})
	}
	each("tenstorrent_devices", func(_ int, add func(string, float64)) { add("", fleetChips) })
	each("tenstorrent_simulated", func(_ int, add func(string, float64)) { add("", 1) })
	each("tenstorrent_devices_in_condition", func(h int, add func(string, float64)) {
		hung := map[bool]float64{true: 1}[h%100 == 7]
		for _, kind := range []string{"lost", "throttled", "hot", "slow_link", "link_down", "resetting"} {
			add(fmt.Sprintf(",condition=%q", kind), 0)
		}
		add(`,condition="hung"`, hung)
		add(`,condition="ok"`, fleetChips-hung)
	})
}

// writeSums writes what the rules would record.
func (f *madeFleet) writeSums(m *maker, now time.Time) {
	for _, s := range sums.All() {
		_, labels, _ := strings.Cut(strings.TrimSuffix(s.Of, "}"), "{")
		if labels != "" {
			labels = "," + labels
		}
		m.each(s.Name(), now, 90*time.Second, func(add func(string, float64)) {
			for h := range f.hosts {
				host := fmt.Sprintf(`host="node%05d"%s`, h, labels)
				switch {
				case len(s.Keep) == 0:
					add(host, map[string]float64{"count": fleetChips, "sum": fleetChips * 10}[s.By]+50)
				case s.Keep[0] == "condition":
					hung := map[bool]float64{true: 1}[h%100 == 7]
					add(host+`,condition="ok"`, fleetChips-hung)
					if hung > 0 {
						add(host+`,condition="hung"`, hung)
					}
				default:
					add(host+fmt.Sprintf(`,%s="%d"`, s.Keep[len(s.Keep)-1], h), 1)
				}
			}
		})
	}
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
