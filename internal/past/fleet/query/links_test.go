package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// meshHost serves the metrics of one host of a mesh.
type meshHost struct {
	t    *testing.T
	snap *model.Snapshot
	page atomic.Pointer[[]byte] // nil: the host is away
}

// ring makes n hosts: channel 1 of each leads to channel 0 of the next.
func ring(t *testing.T, n int) (hosts []*meshHost) {
	for i := range n {
		s := tuitest.Well(2, i+1)
		port := func(channel, peer, remote int) model.EthernetPort {
			return model.EthernetPort{
				Channel: channel, Link: model.LinkOutside, Up: model.Value(true),
				Remote: model.RemotePort{Own: uint64(100 + i), Chip: uint64(100 + peer), Channel: remote},
			}
		}
		s.Devices[1].Telemetry.Ports = []model.EthernetPort{port(0, (i+n-1)%n, 1), port(1, (i+1)%n, 0)}
		h := &meshHost{t: t, snap: s}
		h.serve(func(*model.Device) {})
		hosts = append(hosts, h)
	}
	return hosts
}

// serve shows the host after a change to its device with the links.
func (h *meshHost) serve(change func(*model.Device)) {
	change(&h.snap.Devices[1])
	w := prom.NewWalker(prom.Options{})
	w.Observe(h.snap)
	page := &prom.Page{}
	w.Walk(h.snap, nil, page.Add)
	body := page.Bytes()
	h.page.Store(&body)
}

func cut(channels ...int) func(*model.Device) {
	return func(d *model.Device) {
		for _, c := range channels {
			d.Telemetry.Ports[c].Up = model.Value(false)
		}
	}
}

// meshEngine is a Prometheus that scrapes hosts every three seconds: what a busy machine
// does not serve within the interval is a host that is away.
func meshEngine(t *testing.T, hosts []*meshHost, recorded bool) *Query {
	t.Helper()
	mux := http.NewServeMux()
	dir, config := t.TempDir(), "global: {scrape_interval: 3s}\n"
	if recorded {
		rules := strings.ReplaceAll(string(sums.RuleFile()), "interval: 30s", "interval: 1s")
		if err := os.WriteFile(filepath.Join(dir, "sums.yml"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		config += "rule_files: [sums.yml]\n"
	}
	for i, h := range hosts {
		mux.HandleFunc(fmt.Sprintf("/n%d", i), func(w http.ResponseWriter, _ *http.Request) {
			body := h.page.Load()
			if body == nil {
				http.Error(w, "the host is away", http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", prom.Text.ContentType())
			_, _ = w.Write(*body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	config += "scrape_configs:\n"
	for i := range hosts {
		config += fmt.Sprintf("- {job_name: n%[1]d, metrics_path: /n%[1]d, static_configs: [{targets: ['%[2]s'], labels: {host: n%[1]d}}]}\n", i, at)
	}
	return newQuery(t, engine(t, dir, config))
}

// Both ends of every link are found, and the cause of those that are down is the host
// that is away, has a dead device, or lost several others; with and without recorded
// sums.
func TestLinks(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded=%v", recorded), func(t *testing.T) {
			t.Parallel()
			hosts := ring(t, 4)
			q := meshEngine(t, hosts, recorded)
			links := func(host string) *sums.HostLinks {
				q.from = nil
				l, err := q.Links(host)
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			waitFor(t, "the engine answers", func() bool { q.from = nil; _, err := q.Links(""); return err == nil })
			waitFor(t, "four links whose ends are up", func() bool {
				l := links("")
				return len(l.Links) == 4 && l.Ends == 8 && l.Down() == 0 && l.Links[0].Ends[0].Report == assess.EndUp && l.Links[0].Ends[1].Report == assess.EndUp
			})
			if recorded {
				waitFor(t, "sums are recorded", func() bool { q.from = nil; from, err := q.source(); return err == nil && from == sums.Recorded })
			}
			if l := links("n1"); len(l.Links) != 2 || !l.Complete {
				t.Errorf("the links of one host: %+v", l)
			}
			says := func(what string) {
				t.Helper()
				last := ""
				waitFor(t, what, func() bool {
					q.from = nil
					f, err := q.Fleet()
					if err != nil {
						t.Fatal(err)
					}
					last = strings.Join(f.Links.Trouble(time.Now()), "\n")
					return strings.Contains(last, what)
				})
			}
			hosts[0].serve(cut(1))
			hosts[1].serve(cut(0))
			says("1 link between n0 and n1 is down: either end can be the cause")
			hosts[1].serve(cut(1))
			hosts[2].serve(cut(0))
			says("n1 is the likely cause of 2 links to n0, n2 that are down")
			f, err := q.Fleet()
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range f.Hosts {
				if (h.Suspect != nil) != (h.Name == "n1") || h.Name == "n1" && !strings.Contains(h.Reason(nil), "likely cause of 2 links down") {
					t.Errorf("%s: %s", h.Name, h.Reason(nil))
				}
			}
			hosts[1].serve(func(d *model.Device) { d.State, d.Telemetry.Ports = model.StateLost, nil })
			says("n1 has a device that does not work, and 2 links to n0, n2 are down")
			hosts[1].page.Store(nil)
			says("n1 has reported nothing")
			l := links("n1")
			for i := range l.Links {
				if v := l.Verdicts[i]; v.Suspect != "n1" || v.Evidence != assess.SuspectAway {
					t.Errorf("a link of a host that is away: %+v %+v", l.Links[i], v)
				}
			}
			if len(l.Links) != 2 {
				t.Errorf("%d links of a host that is away", len(l.Links))
			}
		})
	}
}
