package query

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// engine starts a real Prometheus with a configuration.
func engine(t *testing.T, dir, config string) *client.Prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is missing: it is a package of Debian")
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	address := ""
	for address == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), `msg="Listening on" address=`); ok {
			address = strings.Fields(rest)[0]
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	p, err := client.NewPrometheus("http://"+address, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waitFor asks until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: %s", what)
		}
	}
}

func newQuery(t *testing.T, p *client.Prometheus) *Query {
	t.Helper()
	q, err := New(t.Context(), p, "host")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// exporter serves the metrics of hosts, one below each path.
func exporter(t *testing.T, hosts map[string]*model.Snapshot) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	for name, s := range hosts {
		w := prom.NewWalker(prom.Options{Version: "test", Processes: 100, MaxWorkloads: 100})
		w.Observe(s)
		page := &prom.Page{}
		w.Walk(s, nil, page.Add)
		body := page.Bytes()
		mux.HandleFunc("/"+name, func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", prom.Text.ContentType())
			_, _ = out.Write(body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// The sums that a real Prometheus records by the shipped rules are those that it
// computes when it is asked to add up: of hosts that are well and in trouble, whose
// power and memory is known in part, and of a host without devices.
func TestRecordedSumsAreTheSums(t *testing.T) {
	hermetic.Long(t)
	hosts := map[string]*model.Snapshot{"well": tuitest.Well(3, 5), "ill": tuitest.Ill(8, 7), "bare": tuitest.Well(0, 1)}
	hosts["well"].Devices[1].Power = model.Missing[float64](model.Absent, "a test")
	at := exporter(t, hosts)
	dir := t.TempDir()
	rules := strings.ReplaceAll(string(sums.RuleFile()), "interval: 30s", "interval: 1s")
	if err := os.WriteFile(filepath.Join(dir, "sums.yml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	// A page that is not served within the interval on a busy machine is a host that is gone.
	config := "global: {scrape_interval: 5s}\nrule_files: [sums.yml]\nscrape_configs:\n"
	for name := range hosts {
		config += fmt.Sprintf("- {job_name: %[1]s, metrics_path: /%[1]s, static_configs: [{targets: ['%[2]s'], labels: {host: %[1]s}}]}\n", name, at)
	}
	p := engine(t, dir, config)
	waitFor(t, "the sums of three hosts are not recorded", func() bool {
		list, err := p.Query(t.Context(), "count("+sums.Fresh("host")+")")
		return err == nil && len(list) == 1 && list[0].Points[0].Value == 3
	})
	recorded := newQuery(t, p)
	a, err := recorded.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	if !a.Recorded || len(a.Hosts) != 3 {
		t.Fatalf("it is not asked for the sums, or has not all hosts: %+v", a)
	}
	for name, from := range map[string]sums.Source{"devices": sums.Devices, "both": sums.Both} {
		t.Run(name, func(t *testing.T) {
			q := newQuery(t, p)
			q.from = &from
			b, err := q.Fleet()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a, b, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(sums.Fleet{}, "Recorded")); diff != "" {
				t.Errorf("recorded (-) and %s (+):\n%s", name, diff)
			}
			for _, s := range sums.All() {
				if x, y := values(t, recorded, s), values(t, q, s); !cmp.Equal(x, y, cmpopts.EquateNaNs()) {
					t.Errorf("%s: recorded (-), added up (+):\n%s", s.Name(), cmp.Diff(x, y))
				}
			}
		})
	}
	total := a.Total()
	if total.Chips.Count() != 11 || total.PowerBound != model.AtLeast {
		t.Errorf("all hosts: %+v", total)
	}
}

// values are those of a sum, by their labels.
func values(t *testing.T, q *Query, s sums.Sum) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	if err := q.Sum(s, func(l map[string]string, v float64) { got[fmt.Sprint(l)] = v }); err != nil {
		t.Fatal(err)
	}
	return got
}

// blocks makes the data of a Prometheus of samples.
func blocks(t *testing.T, dir string, samples ...string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: it comes with Debian's package prometheus")
	}
	var b strings.Builder
	typed := map[string]bool{}
	for _, line := range samples {
		name, _, _ := strings.Cut(line, "{")
		if !typed[name] {
			typed[name] = true
			fmt.Fprintf(&b, "# TYPE %s gauge\n", name)
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("# EOF\n")
	file := filepath.Join(dir, "samples.om")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Where sums are fresh they are what is asked for; where the rules are no longer
// evaluated, never were, or are those of another release, the devices are.
func TestSumsThatAreNotFresh(t *testing.T) {
	start := time.Now().Unix()
	old := []int64{start - 200} // within the five minutes for which an engine returns it
	var now []int64             // also when a busy machine starts the engine minutes later
	for at := start; at < start+600; at += 30 {
		now = append(now, at)
	}
	lines := func(at []int64, format string, args ...any) (out []string) {
		for _, t := range at {
			out = append(out, fmt.Sprintf(format+" %d", append(slices.Clip(args), t)...))
		}
		return out
	}
	raw := func(host string, watts int) []string {
		return slices.Concat(
			lines(now, `tenstorrent_devices{host=%q} 1`, host),
			lines(now, `tenstorrent_devices_in_condition{host=%q,condition="ok"} 1`, host),
			lines(now, `tenstorrent_core_power_watts{host=%q,device="0",pci="0"} %d`, host, watts),
		)
	}
	version := sums.Version()
	recorded := func(host string, watts int, at []int64) []string {
		return slices.Concat(
			lines(at, `host:tenstorrent_devices_in_condition:sum{host=%q,condition="ok"} 1`, host),
			lines(at, `host:tenstorrent_core_power_watts:sum{host=%q} %d`, host, watts),
			lines(at, `host:tenstorrent_core_power_watts:count{host=%q} 1`, host),
			lines(at, `host:tenstorrent_devices:sum{host=%q} 1`, host),
			lines(at, sums.Marker+`{host=%q,rules=%q} 1`, host, version),
		)
	}
	older := func(host string, watts int) []string {
		defer func(v string) { version = v }(version)
		version = "of another release"
		return recorded(host, watts, now)
	}
	for _, c := range []struct {
		name    string
		samples [][]string
		want    map[string]float64
		sums    bool
	}{
		{"no rules", [][]string{raw("a", 10), raw("b", 20)}, map[string]float64{"a": 10, "b": 20}, false},
		{"rules for all", [][]string{raw("a", 10), raw("b", 20), recorded("a", 11, now), recorded("b", 21, now)}, map[string]float64{"a": 11, "b": 21}, true},
		{"rules for one", [][]string{raw("a", 10), raw("b", 20), recorded("a", 11, now)}, map[string]float64{"a": 11, "b": 20}, true},
		{"rules that stopped for one", [][]string{raw("a", 10), raw("b", 20), recorded("a", 11, now), recorded("b", 99, old)}, map[string]float64{"a": 11, "b": 20}, true},
		{"rules of another release", [][]string{raw("a", 10), raw("b", 20), older("a", 99), older("b", 99)}, map[string]float64{"a": 10, "b": 20}, false},
		{"rules of another release for one", [][]string{raw("a", 10), raw("b", 20), recorded("a", 11, now), older("b", 99)}, map[string]float64{"a": 11, "b": 20}, true},
		{"rules that stopped", [][]string{raw("a", 10), raw("b", 20), recorded("a", 99, old), recorded("b", 99, old)}, map[string]float64{"a": 10, "b": 20}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var all []string
			for _, list := range c.samples {
				all = append(all, list...)
			}
			blocks(t, dir, all...)
			p := engine(t, dir, "{}\n")
			waitFor(t, "it does not answer", func() bool { _, err := p.HostLabel(t.Context()); return err == nil })
			f, err := newQuery(t, p).Fleet()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, h := range f.Hosts {
				got[h.Name] = h.Power
				if h.PowerBound != model.Exact {
					t.Errorf("the power of %s is in doubt", h.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || f.Recorded != c.sums {
				t.Errorf("sums are asked for: %v; power:\n%s", f.Recorded, diff)
			}
		})
	}
}
