package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// benchWeb measures the page: what it weighs, when it shows something, what it
// costs the browser and ttmond with 32 devices that move once a second and with
// 100 viewers, and a fleet of 1,000 hosts with 32 chips each in a real
// Prometheus.
func benchWeb(l *lab) error {
	tab, done, err := newTab()
	if err != nil {
		return err
	}
	defer done()
	address, pid, stop, err := l.pageOf32()
	if err != nil {
		return err
	}
	defer stop()
	if err := weigh(address); err != nil {
		return err
	}
	if err := firstPicture(tab, address); err != nil {
		return err
	}
	if err := tabCost(tab); err != nil {
		return err
	}
	if err := viewersCost(address, pid, 100); err != nil {
		return err
	}
	return l.fleetOfThousand(tab)
}

// newTab starts a browser.
func newTab() (ctx context.Context, stop func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: tools/setup test installs it", err)
	}
	alloc, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true))...)
	ctx, cancel := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		cancel()
		end()
		return nil, nil, err
	}
	return ctx, func() { cancel(); end() }, nil
}

// freeAddress is one without a listener.
func freeAddress() (string, error) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer probe.Close()
	return probe.Addr().String(), nil
}

// pageOf32 runs ttmond on a simulated Galaxy. pid is ttmond's.
func (l *lab) pageOf32() (address string, pid int, stop func(), err error) {
	if address, err = freeAddress(); err != nil {
		return "", 0, nil, err
	}
	dir, err := os.MkdirTemp("", "ttmon-bench-") // the host has a /dev/shm of its own
	if err != nil {
		return "", 0, nil, err
	}
	note := filepath.Join(dir, "pid")
	script := fmt.Sprintf(`%[1]s/ttmond --socket %[3]s/api --alloc-socket %[3]s/alloc --state-dir %[3]s/ttmond 2>/dev/null & %[1]s/ttmon-server --daemon %[3]s/api --socket %[3]s/server.sock --listen %[2]s --state-dir %[3]s/state 2>/dev/null & echo $! >%[4]s; wait`, l.bin, address, dir, note)
	cmd := exec.Command(filepath.Join(l.bin, "ttmon-sim"), "--boards", "galaxy-wormhole", "--", "sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	stop = func() {
		if pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	for range 600 {
		if r, err := http.Get("http://" + address + "/-/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == 200 {
				b, err := os.ReadFile(note)
				if err == nil {
					pid, err = strconv.Atoi(string(bytes.TrimSpace(b)))
				}
				return address, pid, stop, err
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	return "", 0, nil, errors.New("ttmond was not ready within a minute")
}

func weigh(address string) error {
	total := 0
	for _, path := range []string{"/", "/page.js", "/stream.js", "/style.css", "/icon.svg"} {
		r, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Accept-Encoding", "gzip")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
		total += int(n)
	}
	fmt.Printf("first load        %.1f KB compressed\n", float64(total)/1e3)
	return nil
}

// firstPicture opens the page until all cells are drawn.
func firstPicture(tab context.Context, address string) error {
	var best time.Duration
	for i := range 5 {
		begun := time.Now()
		if err := chromedp.Do(tab, chromedp.Navigate("http://"+address+"/")); err != nil {
			return err
		}
		if err := waitFor(tab, `document.querySelectorAll("a.cell").length === 32`); err != nil {
			return err
		}
		if took := time.Since(begun); i == 0 || took < best {
			best = took
		}
	}
	fmt.Printf("first picture     %s ms until 32 devices are drawn\n", ms(best))
	return nil
}

func waitFor(tab context.Context, expr string) error {
	for range 3000 {
		if ok, err := chromedp.Run(tab, chromedp.Evaluate[bool](expr)); err == nil && ok {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the page never came to this: %s", expr)
}

// tabCost is the time of the page's main thread: scripts, styles, layout. The worker
// that reads the stream for all tabs is not in it.
func tabCost(tab context.Context) error {
	if _, err := chromedp.Call(tab, performance.Enable, performance.EnableParams{}); err != nil {
		return err
	}
	task := func() (float64, error) {
		r, err := chromedp.Call(tab, performance.GetMetrics, cdp.Empty{})
		for _, m := range r.Metrics {
			if m.Name == "TaskDuration" {
				return m.Value, err
			}
		}
		return 0, errors.Join(err, errors.New("the browser does not tell its time"))
	}
	before, err := task()
	if err != nil {
		return err
	}
	const seconds = 15
	time.Sleep(seconds * time.Second)
	after, err := task()
	if err != nil {
		return err
	}
	fmt.Printf("browser tab       %.2f %% of a core, 32 devices at 1 Hz\n", (after-before)/seconds*100)
	return nil
}

// viewersCost compares ttmond without viewers and with many.
func viewersCost(address string, pid, viewers int) error {
	alone, err := costOver(pid, 15*time.Second)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxConnsPerHost: 0}}
	defer client.CloseIdleConnections()
	got := make(chan int, viewers)
	for range viewers {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/watch?said=1", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Accept-Encoding", "gzip")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		if answer.StatusCode != 200 {
			return fmt.Errorf("a viewer is refused: %s", answer.Status)
		}
		go func() {
			defer answer.Body.Close()
			n, _ := io.Copy(io.Discard, answer.Body)
			got <- int(n)
		}()
	}
	time.Sleep(2 * time.Second)
	begun := time.Now()
	with, err := costOver(pid, 15*time.Second)
	if err != nil {
		return err
	}
	lasted := time.Since(begun) + 2*time.Second
	cancel()
	total := 0
	for range viewers {
		total += <-got
	}
	fmt.Printf("ttmond            %.2f %% of a core without viewers, %.2f %% with %d: %.2f %% for them, %.1f KB a second for each\n",
		alone*100, with*100, viewers, (with-alone)*100, float64(total)/float64(viewers)/lasted.Seconds()/1e3)
	return nil
}

// costOver is the share of a core that a process takes.
func costOver(pid int, d time.Duration) (float64, error) {
	before, err := cpuTime(pid)
	if err != nil {
		return 0, err
	}
	time.Sleep(d)
	after, err := cpuTime(pid)
	return (after - before).Seconds() / d.Seconds(), err
}

const (
	fleetHosts = 1000
	fleetChips = 32
)

// fleetPage is what 1,000 ttmonds would be scraped for, as one exporter.
func fleetPage() []byte {
	var b bytes.Buffer
	each := func(name string, line func(host, chip int) string) {
		fmt.Fprintf(&b, "# TYPE %s gauge\n", name)
		for h := range fleetHosts {
			for c := range fleetChips {
				fmt.Fprintf(&b, "%s{host=\"node%04d\",device=\"%d\",pci=\"0000:%02x:00.0\"%s\n", name, h, c, c, line(h, c))
			}
		}
	}
	each("tenstorrent_device_state", func(h, c int) string {
		state := "ok"
		if h%97 == 0 && c == 5 {
			state = "hung"
		}
		return fmt.Sprintf(",state=%q} 1", state)
	})
	each("tenstorrent_asic_temperature_celsius", func(h, c int) string { return fmt.Sprintf("} %d", 35+(h*7+c*3)%40) })
	fmt.Fprintln(&b, "# TYPE tenstorrent_devices gauge")
	for h := range fleetHosts {
		fmt.Fprintf(&b, "tenstorrent_devices{host=\"node%04d\"} %d\n", h, fleetChips)
	}
	return b.Bytes()
}

func (l *lab) fleetOfThousand(tab context.Context) error {
	text := fleetPage()
	exporter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text)
	})}
	go func() { _ = web.Serve(exporter) }()
	defer web.Close()
	dir := filepath.Join(l.dir, "prometheus")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	config := "scrape_configs:\n- job_name: ttmon\n  scrape_interval: 10s\n  honor_labels: true\n  static_configs: [{targets: ['" + exporter.Addr().String() + "']}]\n"
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		return err
	}
	engine, err := freeAddress()
	if err != nil {
		return err
	}
	page, err := freeAddress()
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"prometheus", "--config.file=" + filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + engine},
		{filepath.Join(l.bin, "ttmon-server"), "fleet", "--prometheus", "http://" + engine, "--listen", page},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	}
	if err := l.awaitFleet("http://" + page + "/api/v1/fleet"); err != nil {
		return err
	}
	time.Sleep(6 * time.Second) // the answer that is kept is old by then
	begun := time.Now()
	if err := l.awaitFleet("http://" + page + "/api/v1/fleet"); err != nil {
		return err
	}
	fmt.Printf("a fleet           %s ms for the engine's answers about %d hosts with %d chips\n", ms(time.Since(begun)), fleetHosts, fleetHosts*fleetChips)
	begun = time.Now()
	if err := chromedp.Do(tab, chromedp.Navigate("http://"+page+"/fleet")); err != nil {
		return err
	}
	if err := waitFor(tab, `document.querySelector(".fleet canvas")?.width > 300 && document.querySelector(".hostdetail") !== null`); err != nil {
		return err
	}
	fmt.Printf("a fleet           %s ms until they are drawn\n", ms(time.Since(begun)))
	frame, err := chromedp.Run(tab, chromedp.Evaluate[float64](`new Promise(done => {
		const box = document.querySelector(".fleet"), begun = performance.now(); let n = 0;
		const step = () => { box.scrollTop += 180; if (++n < 100) requestAnimationFrame(step); else done((performance.now() - begun) / n); };
		requestAnimationFrame(step); })`, chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	fmt.Printf("a fleet           %.1f ms a frame while it is scrolled from end to end\n", frame)
	return nil
}

// awaitFleet waits until the engine has scraped.
func (l *lab) awaitFleet(url string) error {
	for range 300 {
		r, err := http.Get(url)
		if err == nil {
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode == 200 && bytes.Count(b, []byte(`"name":"node`)) == fleetHosts {
				return nil
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	return errors.New("the engine has no fleet after a minute")
}
