package grafana

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ttmon/ttmon/internal/golden"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// The dashboards are up to date, ask in PromQL, and for series that there are.
func TestDashboards(t *testing.T) {
	known := map[string]bool{"ALERTS": true}
	for _, f := range prom.Families() {
		known[f.Name] = true
	}
	for name, b := range map[string][]byte{"ttmon-node.json": Node(metric.Devices()), "ttmon-fleet.json": Fleet()} {
		// Kustomize and Helm take only files below their own directory.
		for _, dir := range []string{"grafana", "kubernetes/base", "helm/ttmon/dashboards"} {
			golden.Check(t, "../../../packaging/"+dir+"/"+name, b)
		}
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(b, &d); err != nil || len(d.Panels) < 10 {
			t.Fatalf("%s: %v, %d panels", name, err, len(d.Panels))
		}
		for _, p := range d.Panels {
			expr := strings.ReplaceAll(p.Targets[0].Expr, "$__rate_interval", "5m")
			e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
			if err != nil {
				t.Errorf("%s: %s: %v", name, p.Title, err)
				continue
			}
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				if v, ok := n.(*parser.VectorSelector); ok && !known[v.Name] {
					t.Errorf("%s: %s asks for %s", name, p.Title, v.Name)
				}
				return nil
			})
		}
	}
}
