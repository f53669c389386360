package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// ringHost is one of several hosts that are cabled to a ring, with its daemons.
type ringHost struct {
	*daemon
	server *restartable
	at     string // where its metrics are
}

func startRing(t *testing.T, n int) (hosts []ringHost) {
	for k := range n {
		h := start(t, sim.Options{Boards: "2xn300", Cables: true, UMDDump: true, MeshHost: fmt.Sprintf("%d/%d", k+1, n)})
		d := startDaemon(t, h, "--firmware", "table")
		r := ringHost{daemon: d, server: d.serverAt("127.0.0.1:0")}
		for limit := time.Now().Add(5 * time.Minute); r.at == ""; time.Sleep(50 * time.Millisecond) {
			if got := runIn(t, h, "web", "--public", "--daemon", d.api); got.code == 0 {
				r.at = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(got.out), "http://"), "/")
			} else if time.Now().After(limit) {
				t.Fatalf("host %d serves no metrics: %s", k+1, got.err)
			}
		}
		d.until("links to other hosts are known", func(args ...string) result { return runIn(t, h, args...) }, func(s *model.Snapshot) bool {
			n := 0
			for i := range s.Devices {
				for _, p := range s.Devices[i].Telemetry.Ports {
					if p.Link == model.LinkOutside && p.Remote.Known() && p.Up.V {
						n++
					}
				}
			}
			return n == 4
		})
		hosts = append(hosts, r)
	}
	return hosts
}

// TestLinksBetweenHosts: three hosts in a ring and a real Prometheus. ttmon fleet finds
// both ends of every cable, and names the host that is the cause of those that are down:
// one that lost both neighbours, one whose board is gone, and one that is away.
func TestLinksBetweenHosts(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	hosts := startRing(t, 3)
	engine := programs.Prometheus(t, hosts[0].at, hosts[1].at, hosts[2].at)
	fleet := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, _ := exec.CommandContext(ctx, filepath.Join(bin, "ttmon"), append([]string{"fleet", "--prometheus", engine}, args...)...).CombinedOutput()
		return string(out)
	}
	until := func(what string, args ...string) string {
		t.Helper()
		for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			got := fleet(args...)
			if strings.Contains(got, what) && !strings.Contains(got, "unknown host") { // all hosts were scraped
				return got
			}
			if time.Now().After(limit) {
				t.Fatalf("ttmon fleet %v does not say %q:\n%s", args, what, got)
			}
		}
	}
	got := until("6 links between hosts, all up", "--links")
	for _, want := range []string{
		fmt.Sprintf("%s device 1 channel 14", hosts[0].at), fmt.Sprintf("%s device 0 channel 0", hosts[1].at), "up ↔ up",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if got := fleet("--links", hosts[1].at); !strings.Contains(got, "4 links between hosts, all up") {
		t.Errorf("the links of one host:\n%s", got)
	}
	var topo struct {
		Outside []struct {
			Remote struct {
				Chip string `json:"chip_id"`
			}
			Up bool
		} `json:"outside_links"`
	}
	r := runIn(t, hosts[0].host, "topo", "--json", "--daemon", hosts[0].api)
	if err := json.Unmarshal([]byte(r.out), &topo); err != nil || len(topo.Outside) != 4 || topo.Outside[0].Remote.Chip == "" || !topo.Outside[0].Up {
		t.Errorf("ttmon topo --json: %v\n%s", err, r.out)
	}
	if r := runIn(t, hosts[0].host, "topo", "--daemon", hosts[0].api); !strings.Contains(r.out, "the firmware reports 8 up and 0 down now") || strings.Contains(r.out, "pulled") {
		t.Errorf("ttmon topo does not say what the firmware knows:\n%s", r.out)
	}

	ctl(t, hosts[0].host, "cut", "1", "14", "15")
	ctl(t, hosts[1].host, "cut", "0", "0", "1")
	until("either end can be the cause", "--once")
	ctl(t, hosts[1].host, "cut", "1", "14", "15")
	ctl(t, hosts[2].host, "cut", "0", "0", "1")
	suspect := fmt.Sprintf("%s is the likely cause of 4 links to ", hosts[1].at)
	got = until(suspect, "--once")
	if !strings.Contains(got, "likely cause of 4 links down") {
		t.Errorf("the row of the host does not say it:\n%s", got)
	}
	var answer struct {
		Links struct {
			Down     int
			Suspects []struct{ Host, Evidence string }
		}
	}
	if err := json.Unmarshal([]byte(fleet("--json")), &answer); err != nil || answer.Links.Down != 4 || len(answer.Links.Suspects) != 1 || answer.Links.Suspects[0].Host != hosts[1].at || answer.Links.Suspects[0].Evidence != "links_to_several_hosts" {
		t.Errorf("ttmon fleet --json: %v, %+v", err, answer)
	}

	ctl(t, hosts[1].host, "dead", "0")
	until(hosts[1].at+" has a device that does not work", "--once")
	hosts[1].server.stop(syscall.SIGTERM)
	until(hosts[1].at+" has reported nothing", "--once")
	got = until(", and 4 links to ", "--once") // what the others report comes in one after the other
	if strings.Contains(got, "either end") || !strings.Contains(got, " has reported nothing") {
		t.Errorf("a host that is away leaves doubt:\n%s", got)
	}
}
