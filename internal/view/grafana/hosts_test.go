package grafana

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// shownHosts are the ways by which hosts come into an engine, and how each is named.
var shownHosts = []struct{ how, name, host, instance string }{
	{"pushed", "lab-1", "lab-1", ""},
	{"scraped", "lab-2:9108", "", "lab-2:9108"},
	{"scraped with a name", "lab-3", "lab-3", "10.0.0.3:9108"},
}

// decoded is what a test reads of a dashboard.
type decoded struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Regex string
			Query       any
		}
	}
}

func decode(t *testing.T, b []byte) (d decoded) {
	t.Helper()
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// query is what the engine is asked for the values of a variable.
func (d decoded) query(t *testing.T, name string) (expr string, value *regexp.Regexp) {
	t.Helper()
	for _, v := range d.Templating.List {
		if q, ok := v.Query.(map[string]any); ok && v.Name == name {
			text := q["query"].(string)
			return strings.TrimSuffix(strings.TrimPrefix(text, "query_result("), ")"), regexp.MustCompile(strings.Trim(v.Regex, "/"))
		}
	}
	t.Fatalf("no variable %s", name)
	return "", nil
}

// engine is a database with a sample of every series that the expressions select, for
// every host, now and a minute ago.
type engine struct {
	t   *testing.T
	db  *tsdb.DB
	eng *promql.Engine
	now time.Time
}

func newEngine(t *testing.T, exprs []string) engine {
	t.Helper()
	options := tsdb.DefaultOptions()
	db, err := tsdb.Open(t.TempDir(), nil, nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	e := engine{t: t, db: db, now: time.Unix(1_800_000_000, 0), eng: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}
	names := map[string]bool{}
	for _, expr := range exprs {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				names[v.Name] = true
			}
			return nil
		})
	}
	app := db.Appender(t.Context())
	for name := range names {
		for _, h := range shownHosts {
			b := labels.NewBuilder(labels.FromStrings("__name__", name, "device", "0", "pool", "dram", "condition", "hung", "state", "hung", "alertstate", "firing",
				"direction", "to", "chip", "L", "reason", "heat"))
			b.Set("host", h.host).Set("instance", h.instance)
			for i := range 5 {
				at := e.now.Add(time.Duration(i-4) * 15 * time.Second)
				if _, err := app.Append(0, b.Labels(), at.UnixMilli(), 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e engine) query(expr string) promql.Vector {
	e.t.Helper()
	q, err := e.eng.NewInstantQuery(e.t.Context(), storage.Queryable(e.db), nil, expr, e.now)
	if err != nil {
		e.t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	v, err := q.Exec(e.t.Context()).Vector()
	if err != nil {
		e.t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(v)
}

// values are those that Grafana offers for a variable.
func (e engine) values(expr string, value *regexp.Regexp) (list []string) {
	for _, s := range e.query(expr) {
		if m := value.FindStringSubmatch(s.Metric.String()); m != nil {
			list = append(list, m[1])
		}
	}
	slices.Sort(list)
	return list
}

func ready(expr, host string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$host", host, "$device", "0|1").Replace(expr)
}

// Every panel shows each host, however its samples came, and nothing of another.
func TestNodeShowsEveryKindOfHost(t *testing.T) {
	d := decode(t, Node(metric.Devices()))
	hosts, hostValue := d.query(t, "host")
	devices, deviceValue := d.query(t, "device")
	exprs := []string{hosts, ready(devices, "x")}
	for _, p := range d.Panels {
		exprs = append(exprs, ready(p.Targets[0].Expr, "x"))
	}
	e := newEngine(t, exprs)
	var want []string
	for _, h := range shownHosts {
		want = append(want, h.name)
	}
	if got := e.values(hosts, hostValue); !slices.Equal(got, want) {
		t.Fatalf("the hosts to choose from are %v, not %v", got, want)
	}
	for _, h := range shownHosts {
		t.Run(h.how, func(t *testing.T) {
			if got := e.values(ready(devices, h.name), deviceValue); !slices.Equal(got, []string{"0"}) {
				t.Errorf("its devices are %v", got)
			}
			for _, p := range d.Panels {
				if got := e.query(ready(p.Targets[0].Expr, h.name)); len(got) != 1 || strings.HasPrefix(p.Targets[0].Expr, "sum(") && got[0].F != 1 {
					t.Errorf("%s: %v", p.Title, got)
				}
			}
		})
	}
}

func TestFleetShowsEveryKindOfHost(t *testing.T) {
	d := decode(t, Fleet())
	var exprs []string
	for _, p := range d.Panels {
		exprs = append(exprs, ready(p.Targets[0].Expr, ""))
	}
	e := newEngine(t, exprs)
	n := 0
	for i, p := range d.Panels {
		got := e.query(exprs[i])
		if p.Title == "Hosts" && got[0].F != float64(len(shownHosts)) {
			t.Errorf("%v hosts", got[0].F)
		}
		if !strings.Contains(exprs[i], "by (host)") {
			continue
		}
		n++
		var names []string
		for _, s := range got {
			names = append(names, s.Metric.Get("host"))
		}
		if slices.Sort(names); !slices.Equal(names, []string{"lab-1", "lab-2:9108", "lab-3"}) {
			t.Errorf("%s shows %v", p.Title, names)
		}
	}
	if n < 4 {
		t.Errorf("only %d panels show hosts", n)
	}
}
