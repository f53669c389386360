package sums

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/view/prom"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// The rule file is made from the table, and the real Prometheus computes with it
// what the test file says.
func TestRuleFile(t *testing.T) {
	golden.Check(t, "../../../packaging/prometheus/ttmon.sums.yml", RuleFile())
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: it comes with Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "ttmon.sums.yml"}, {"test", "rules", "ttmon.sums_test.yml"}} {
		t.Run(args[0], func(t *testing.T) {
			cmd := exec.Command(promtool, args...)
			cmd.Dir = "../../../packaging/prometheus"
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%s", args, err, out)
			}
		})
	}
}

// Every series that a sum is made of is one that there can be, and no two sums
// are recorded under one name and the same labels.
func TestTable(t *testing.T) {
	known := map[string]bool{}
	for _, f := range prom.Families() {
		known[f.Name] = true
	}
	seen := map[string]bool{}
	for _, s := range All() {
		t.Run(s.Name(), func(t *testing.T) {
			for _, word := range strings.FieldsFunc(s.Rule(), func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }) {
				if strings.HasPrefix(word, "tenstorrent_") && !known[word] {
					t.Errorf("it is made of %s", word)
				}
			}
			if seen[s.recorded()] {
				t.Error("it is in the table twice")
			}
			seen[s.recorded()] = true
			if !IsRecorded(s) {
				t.Error("it is not found again")
			}
		})
	}
}

func TestAsk(t *testing.T) {
	s := Field(Used, "count")
	for _, c := range []struct {
		name string
		from Source
		want string
	}{
		{"devices", Devices, `count by (instance) (tenstorrent_memory_used_bytes{pool="dram"})`},
		{"recorded", Recorded, `sum by (instance) (host:tenstorrent_memory_used_bytes:count{pool="dram"})`},
		{"both", Both, `sum by (instance) (host:tenstorrent_memory_used_bytes:count{pool="dram"} and on (instance) FRESH) or count by (instance) ((tenstorrent_memory_used_bytes{pool="dram"}) unless on (instance) FRESH)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.ReplaceAll(s.Query("instance", c.from), Fresh("instance"), "FRESH"); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
