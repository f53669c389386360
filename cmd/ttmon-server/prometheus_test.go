package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// freePort returns a port of 127.0.0.1 that no process listens on now. It is below
// those that the kernel assigns, so that no other process gets it before the test
// uses it.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000)))
		if err == nil {
			l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// tool finds a program of Debian's package prometheus.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: it comes with Debian's package prometheus", name)
	}
	return path
}

// promtool runs the checker of the real Prometheus.
func promtool(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(tool(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// prometheus is a real one, on loopback, with a data folder of its own.
type prometheus struct {
	t             testing.TB
	address, data string
	config        string
	cmd           *exec.Cmd
	log           *syncBuffer
}

func newPrometheus(t testing.TB, config string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	p := &prometheus{t: t, address: freePort(t), data: filepath.Join(dir, "data"), config: filepath.Join(dir, "prometheus.yml"), log: new(syncBuffer)}
	if err := os.WriteFile(p.config, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("log of Prometheus:\n%s", p.log)
		}
	})
	return p
}

func (p *prometheus) start() {
	p.t.Helper()
	p.cmd = exec.Command(tool(p.t, "prometheus"), "--config.file="+p.config, "--storage.tsdb.path="+p.data,
		"--web.listen-address="+p.address, "--web.enable-remote-write-receiver", "--log.level=warn")
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	await(p.t, "Prometheus", func() bool {
		r, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == 200
	})
}

func (p *prometheus) stop() {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// result is one series of an answer.
type result struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
	Values [][2]any          `json:"values"`
}

// query asks a Prometheus API at base.
func query(t testing.TB, base, path string, args url.Values) []result {
	t.Helper()
	r, err := http.Get(base + path + "?" + args.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	var answer struct {
		Status string
		Error  string
		Data   struct{ Result []result }
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s?%s: %v: %s", path, args.Encode(), err, b)
	}
	return answer.Data.Result
}

func (p *prometheus) query(expr string) []result {
	p.t.Helper()
	return query(p.t, "http://"+p.address, "/api/v1/query", url.Values{"query": {expr}})
}

// A real Prometheus scrapes us, and finds nothing wrong with it.
func TestPrometheusScrapes(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	tool(t, "prometheus")
	h := newHost(t)
	h.simulate("n300,p150a")
	address := freePort(t)
	h.start("--listen", address)
	p := newPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs: [{job_name: ttmon, static_configs: [{targets: [%q]}]}]
`, address))
	p.start()
	await(t, "the series", func() bool { return len(p.query("last_over_time(tenstorrent_device_info[5m])")) == 2 })
	// A scrape may take no longer than a second, which a busy machine may miss.
	await(t, "up", func() bool {
		up := p.query(`max_over_time(up{job="ttmon"}[5m])`)
		return len(up) == 1 && up[0].Value[1] == "1"
	})
	// Prometheus asks for OpenMetrics; its older text must pass as well.
	promtool(t, get(t, "http://"+address+"/metrics", nil), "check", "metrics")
}

// get asks for a page.
func get(t testing.TB, url string, header http.Header) string {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	a, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != 200 {
		return fmt.Sprintf("%d: %s", a.StatusCode, b)
	}
	return string(b)
}

// The rule file is loaded by a real Prometheus and fires there; our own rules
// say the same. The hearts of a tree of files do not beat.
func TestPrometheusRulesFire(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	tool(t, "prometheus")
	rules, err := filepath.Abs("../../packaging/prometheus/ttmon.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	h.simulate("n300,p150a")
	address := freePort(t)
	h.start("--listen", address)
	p := newPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: ttmon, static_configs: [{targets: [%q]}]}]
`, rules, address))
	p.start()
	await(t, "the alerts of Prometheus", func() bool { return len(p.query(`ALERTS{alertname="ChipHung",alertstate="firing"}`)) == 2 })
	await(t, "our own", func() bool {
		return strings.Count(get(t, "http://"+address+"/prometheus/api/v1/alerts", nil), `"alertname":"ChipHung"`) == 2
	})
	if groups := get(t, "http://"+address+"/prometheus/api/v1/rules", nil); !strings.Contains(groups, `"health":"ok"`) || strings.Contains(groups, `"health":"err"`) {
		t.Errorf("rules: %s", groups)
	}
}

// Remote write arrives in a real Prometheus, also what was sampled while that
// was down.
func TestPrometheusTakesRemoteWrite(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	tool(t, "prometheus")
	p := newPrometheus(t, "global: {scrape_interval: 1m}\n")
	h := newHost(t)
	h.simulate("n300,p150a")
	config := filepath.Join(h.dir, "ttmond.toml")
	text := fmt.Sprintf("[[remote_write]]\nurl = 'http://%s/api/v1/write'\ninterval = '1s'\nlabels = {rack = '7'}\n", p.address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i := h.start("--config", config)
	h.await("the failure", func() bool { return strings.Contains(i.log.String(), "remote write failed; buffering") })
	buffered := func() int {
		list, _ := filepath.Glob(filepath.Join(h.dir, "state", "remote-write", "*", "*.request"))
		return len(list)
	}
	h.await("a buffer", func() bool { return buffered() >= 5 })
	i.kill() // the buffer outlives it
	kept := buffered()
	h.start("--config", config)
	p.start()
	await(t, "what was sampled while it was down", func() bool {
		r := p.query(`count_over_time(tenstorrent_devices{rack="7"}[10m])`)
		n := 0
		if len(r) == 1 && r[0].Metric["host"] != "" {
			fmt.Sscan(r[0].Value[1].(string), &n)
		}
		return n > kept
	})
	if got := p.query(`tenstorrent_device_info{rack="7"}`); len(got) != 2 {
		t.Errorf("devices: %v", got)
	}
	// The fleet of one host, as ttmon fleet shows it.
	ttmon := released(t, "ttmon")
	out, err := exec.Command(ttmon, "fleet", "--prometheus", "http://"+p.address).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "SIMULATED: 1 host made up by ttmon-sim\n1 host  2 devices") {
		t.Errorf("ttmon fleet: %v\n%s", err, out)
	}
	host := p.query("tenstorrent_devices")[0].Metric["host"]
	out, err = exec.Command(ttmon, "fleet", "--prometheus", "http://"+p.address, host).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "p150a") {
		t.Errorf("ttmon fleet %s: %v\n%s", host, err, out)
	}
	if out, err := exec.Command(ttmon, "fleet", "--prometheus", "http://"+freePort(t)).CombinedOutput(); err == nil || !strings.Contains(string(out), "connection refused") {
		t.Errorf("no server: %v %s", err, out)
	}
}
