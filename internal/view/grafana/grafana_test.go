package grafana

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// The dashboards are up to date, ask in PromQL, and for series that there are.
func TestDashboards(t *testing.T) {
	known := map[string]bool{"ALERTS": true}
	for _, f := range prom.Families() {
		known[f.Name] = true
	}
	for name, b := range map[string][]byte{"ttmon-node.json": Node(metric.Devices()), "ttmon-fleet.json": Fleet()} {
		t.Run(name, func(t *testing.T) {
			// Kustomize and Helm refer to this directory.
			golden.Check(t, "../../../packaging/grafana/"+name, b)
			var d struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
			}
			if err := json.Unmarshal(b, &d); err != nil || len(d.Panels) < 10 {
				t.Fatalf("%v, %d panels", err, len(d.Panels))
			}
			for _, p := range d.Panels {
				expr := strings.ReplaceAll(p.Targets[0].Expr, "$__rate_interval", "5m")
				e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
				if err != nil {
					t.Errorf("%s: %v", p.Title, err)
					continue
				}
				parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
					if v, ok := n.(*parser.VectorSelector); ok && !known[v.Name] {
						t.Errorf("%s asks for %s", p.Title, v.Name)
					}
					return nil
				})
			}
		})
	}
}

// TestDashboardsDoNotJudge: what is wrong with a device is in the judge's series.
// A panel that held a value against a limit of its own would say something else
// than the views and the alerts.
func TestDashboardsDoNotJudge(t *testing.T) {
	judged := map[string]bool{"tenstorrent_device_condition": true, "tenstorrent_devices_in_condition": true, "tenstorrent_device_throttle_reason": true, "ALERTS": true}
	asked := map[string]bool{}
	for name, b := range map[string][]byte{"node": Node(metric.Devices()), "fleet": Fleet()} {
		t.Run(name, func(t *testing.T) {
			var d struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
			}
			if err := json.Unmarshal(b, &d); err != nil {
				t.Fatal(err)
			}
			for _, p := range d.Panels {
				e, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(p.Targets[0].Expr, "$__rate_interval", "5m"))
				if err != nil {
					t.Fatal(err)
				}
				parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
					if v, ok := n.(*parser.VectorSelector); ok {
						asked[v.Name] = true
					}
					if c, ok := n.(*parser.BinaryExpr); ok && c.Op.IsComparisonOperator() {
						parser.Inspect(c, func(n parser.Node, _ []parser.Node) error {
							if v, ok := n.(*parser.VectorSelector); ok && !judged[v.Name] {
								t.Errorf("%s compares %s: ask for the judge's series", p.Title, v.Name)
							}
							return nil
						})
					}
					return nil
				})
			}
		})
	}
	if !asked["tenstorrent_device_condition"] || !asked["tenstorrent_devices_in_condition"] {
		t.Errorf("no panel asks what the judge found: %v", asked)
	}
}

// TestFleetCountsOurAlerts: every shipped rule is counted, and no other.
func TestFleetCountsOurAlerts(t *testing.T) {
	rules, err := os.ReadFile("../../past/alert/rules.toml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^name = "(\w+)"`).FindAllStringSubmatch(string(rules), -1)
	if len(names) < 10 {
		t.Fatalf("%d rules", len(names))
	}
	expr := regexp.MustCompile(`alertname=~\\"([^"\\]+)`).FindSubmatch(Fleet())
	if expr == nil {
		t.Fatal("no panel counts alerts")
	}
	ours := regexp.MustCompile("^(?:" + string(expr[1]) + ")$")
	for _, n := range names {
		t.Run(n[1], func(t *testing.T) {
			if !ours.MatchString(n[1]) {
				t.Errorf("%s does not match %s", n[1], ours)
			}
		})
	}
	if ours.MatchString("KubePodCrashLooping") {
		t.Errorf("%s matches the alerts of others", ours)
	}
}
