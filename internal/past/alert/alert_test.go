package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/view/prom"
)

var t0 = time.Unix(1_800_000_000, 0)

// The rule file for Prometheus is the shipped set, and the real Prometheus
// agrees with it.
func TestRuleFile(t *testing.T) {
	set := Shipped()
	golden.Check(t, "../../../packaging/prometheus/ttmon.rules.yml", set.RuleFile())
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool: it comes with Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "ttmon.rules.yml"}, {"test", "rules", "ttmon.rules_test.yml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			cmd := exec.Command(promtool, args...)
			cmd.Dir = "../../../packaging/prometheus"
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%s", args, err, out)
			}
		})
	}
}

// Every series that a shipped rule asks for is one that there can be.
func TestShippedRulesAskForWhatThereIs(t *testing.T) {
	known := map[string]bool{"tenstorrent_memory_largest_free_bytes": true} // only where the allocator is seen
	for _, f := range prom.Families() {
		known[f.Name] = true
	}
	for _, r := range Shipped().Rules {
		for _, word := range strings.FieldsFunc(r.Expr, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }) {
			if strings.HasPrefix(word, "tenstorrent_") && !known[word] {
				t.Errorf("%s asks for %s", r.Name, word)
			}
		}
		if r.Summary == "" || r.Description == "" {
			t.Errorf("%s has nothing to say", r.Name)
		}
	}
}

func TestStep(t *testing.T) {
	r := &Rule{Name: "R", Severity: "warning", For: Duration{10 * time.Second}, Keep: Duration{5 * time.Second}}
	active := map[string]*Alert{}
	var got []string
	for i, holds := range []bool{true, false, true, true, true, false, true, true, false, false, false} {
		var found []sampleOf
		if holds {
			found = []sampleOf{{map[string]string{"device": "0"}, 1}}
		}
		for _, a := range step(r, active, found, t0.Add(time.Duration(i*5)*time.Second)) {
			got = append(got, fmt.Sprintf("%d %s", i*5, a.Status))
		}
	}
	// It must hold for ten seconds without a break; a break of one evaluation
	// is bridged by keep_firing_for... which 5 s are not enough for.
	if diff := cmp.Diff([]string{"20 firing", "25 resolved"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		rules            int // more than are shipped
	}{
		{"empty", "", "", 0},
		{"one more", "[[rule]]\nname = 'Mine'\nexpr = 'up == 0'\n", "", 1},
		{"replaced", "[[rule]]\nname = 'ChipHot'\nexpr = 'up == 0'\n", "", 0},
		{"switched off", "[[rule]]\nname = 'ChipHot'\ndisabled = true\n", "", -1},
		{"silence", "[[silence]]\nalert = 'ChipHot'\nuntil = 2027-01-01T00:00:00Z\n", "", 0},
		{"broken", "[[rule\n", "line 1", 0},
		{"unknown metric", "[[rule]]\nname = 'A'\nexpr = 'max(tenstorrent_core_power_wats) > 1'\n", "unknown metric tenstorrent_core_power_wats: did you mean tenstorrent_core_power_watts?", 0},
		{"of a process", "[[rule]]\nname = 'A'\nexpr = 'rate(tenstorrent_process_busy_seconds_total[1m]) > tenstorrent_process_longest_gap_seconds'\n", "", 1},
		{"of an operation", "[[rule]]\nname = 'A'\nexpr = 'tenstorrent_operation_busy_seconds_total / tenstorrent_operation_calls_total > 1'\n", "", 1},
		{"unknown key", "[[rule]]\nname = 'A'\nexpresion = 'x'\n", "unknown key rule.expresion", 0},
		{"bad PromQL", "[[rule]]\nname = 'A'\nexpr = 'sum('\n", "rule A: expr", 0},
		{"bad duration", "[[rule]]\nname = 'A'\nexpr = 'up'\nfor = 'soon'\n", "line 4", 0},
		{"negative", "[[rule]]\nname = 'A'\nexpr = 'up'\nfor = '-1s'\n", "negative", 0},
		{"bad severity", "[[rule]]\nname = 'A'\nexpr = 'up'\nseverity = 'fatal'\n", "not one of info, warning, critical", 0},
		{"bad name", "[[rule]]\nname = 'A B'\nexpr = 'up'\n", "letters, digits", 0},
		{"twice", "[[rule]]\nname = 'A'\nexpr = 'up'\n[[rule]]\nname = 'A'\nexpr = 'up'\n", "twice", 0},
		{"bad template", "[[rule]]\nname = 'A'\nexpr = 'up'\nsummary = '{{ $x'\n", "rule A: summary", 0},
		{"off, and not there", "[[rule]]\nname = 'A'\ndisabled = true\n", "no rule of that name", 0},
		{"silence for all", "[[silence]]\nreason = 'x'\n", "matches every alert", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "alerts.toml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := Load(path)
			if c.want == "" {
				if err != nil || len(set.Rules) != len(Shipped().Rules)+c.rules {
					t.Errorf("%d rules, %v", len(set.Rules), err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.toml")); err != nil {
		t.Error(err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(shipped)
	f.Add([]byte("[[silence]]\nalert='x'\nuntil=1979-05-27\n"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parseSet(b) })
}

// bench is a manager over a history, with what it told.
type bench struct {
	t             *testing.T
	store         *disk.Store
	m             *Manager
	changed, sent []string
	now           time.Time
	options       Options
}

func newBench(t *testing.T, rules string) *bench {
	t.Helper()
	dir := t.TempDir()
	store, err := disk.Open(disk.Options{Dir: filepath.Join(dir, "h"), FineFor: time.Hour, CoarseFor: time.Hour, MaxBytes: 1 << 30, MaxSeries: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	path := filepath.Join(dir, "alerts.toml")
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: store, now: t0}
	note := func(to *[]string) func([]*Alert) {
		return func(list []*Alert) {
			for _, a := range list {
				*to = append(*to, fmt.Sprintf("%s %s %s: %s", a.Status, a.Name(), a.Labels["device"], a.Annotations["summary"]))
			}
		}
	}
	b.options = Options{
		Path: path, StateFile: filepath.Join(dir, "alerts.json"), Interval: time.Second, Queryable: store,
		Changed: note(&b.changed), Send: note(&b.sent), Log: slog.New(slog.DiscardHandler),
	}
	b.restart()
	return b
}

func (b *bench) restart() {
	b.t.Helper()
	var err error
	if b.m, err = New(b.options); err != nil {
		b.t.Fatal(err)
	}
}

// second puts the state of device 0 in and evaluates.
func (b *bench) second(state string) {
	b.store.AddSnapshot(func(emit prom.Emit) {
		f := &prom.Family{Name: "tenstorrent_device_condition"}
		for _, s := range []string{"hung", "ok"} {
			v := 0.0
			if s == state {
				v = 1
			}
			emit(f, prom.Pairs("device", "0", "pci", "0000:01:00.0", "condition", s), v)
		}
	})
	b.store.Append(b.now)
	b.m.Evaluate(context.Background(), b.now)
	b.now = b.now.Add(time.Second)
}

// One message when it fires, one when it ends, over any restart.
func TestFiresOnce(t *testing.T) {
	b := newBench(t, "")
	for range 5 {
		b.second("ok")
	}
	for i := range 20 {
		b.second("hung")
		if i == 3 || i == 12 {
			b.restart()
		}
	}
	for range 5 {
		b.second("ok")
	}
	want := []string{"firing ChipHung 0: device 0 (0000:01:00.0) hangs", "resolved ChipHung 0: device 0 (0000:01:00.0) hangs"}
	if diff := cmp.Diff(want, b.sent); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, b.changed); diff != "" {
		t.Error(diff)
	}
	if n := len(b.m.Active()); n != 0 {
		t.Errorf("%d alerts are left", n)
	}
}

// PromQL knows numbers that JSON does not: a rule about one is kept over a restart
// and shown like any other.
func TestInfiniteValue(t *testing.T) {
	b := newBench(t, "[[rule]]\nname = 'Ratio'\nexpr = 'tenstorrent_device_condition{condition=\"ok\"} / 0 > 1'\nsummary = 'device {{ $labels.device }}'\nlabels = {team = 'night'}\n")
	b.second("ok")
	b.restart()
	b.second("ok")
	if diff := cmp.Diff([]string{"firing Ratio 0: device 0"}, b.sent); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(b.m.Active())
	if err != nil || !strings.Contains(string(text), `"value":"+Inf"`) {
		t.Errorf("%s, %v", text, err)
	}
	var again []*Alert
	if err := json.Unmarshal(text, &again); err != nil || len(again) != 1 || !math.IsInf(float64(again[0].Value), 1) {
		t.Errorf("read back: %v, %v", again, err)
	}
	rules, err := json.Marshal(b.m.PrometheusRules())
	if err != nil || !strings.Contains(string(rules), `"labels":{"severity":"warning","team":"night"}`) {
		t.Errorf("the rule's labels are not told: %v\n%s", err, rules)
	}
}

// A silenced alert is shown and not sent; when the silence ends it is.
func TestSilence(t *testing.T) {
	b := newBench(t, "[[silence]]\nalert = 'ChipHung'\nlabels = {device = '0'}\nreason = 'being repaired'\nuntil = "+t0.Add(15*time.Second).UTC().Format(time.RFC3339)+"\n")
	for range 12 {
		b.second("hung")
	}
	if len(b.changed) != 1 || len(b.sent) != 0 {
		t.Fatalf("changed %q, sent %q", b.changed, b.sent)
	}
	if a := b.m.Active(); len(a) != 1 || !a[0].Silenced || a[0].Reason != "being repaired" {
		t.Fatalf("active %+v", a)
	}
	for range 10 {
		b.second("hung")
	}
	if len(b.sent) != 1 {
		t.Errorf("sent %q", b.sent)
	}
}

// A file that has become wrong changes nothing; a rule that is gone ends its
// alerts; a history that fails leaves them as they are.
func TestReload(t *testing.T) {
	b := newBench(t, "")
	for range 10 {
		b.second("hung")
	}
	write := func(text string) {
		if err := os.WriteFile(b.options.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.m.fileAt = time.Time{}
		b.m.reload()
	}
	write("[[rule")
	b.second("hung")
	if b.m.fileErr == nil || len(b.m.Active()) != 1 {
		t.Errorf("%v, %d alerts", b.m.fileErr, len(b.m.Active()))
	}
	b.m.opt.Queryable = storage.QueryableFunc(func(int64, int64) (storage.Querier, error) { return nil, errors.New("away") })
	b.second("ok")
	if len(b.m.Active()) != 1 {
		t.Error("what is not known has changed")
	}
	b.m.opt.Queryable = b.store
	write("[[rule]]\nname = 'ChipHung'\ndisabled = true\n")
	b.second("hung")
	if len(b.m.Active()) != 0 || len(b.sent) != 2 {
		t.Errorf("%d alerts, sent %q", len(b.m.Active()), b.sent)
	}
}
