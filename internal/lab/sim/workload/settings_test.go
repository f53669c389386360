package workload

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
)

// describe leaves the descriptor of a host's boards where workloads find it.
func describe(t *testing.T, root, list string) {
	t.Helper()
	boards, err := chip.ParseBoards(list)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Of(driver.New(driver.Options{Boards: boards}), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(root+cluster.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(root + cluster.Dir); err != nil {
		t.Fatal(err)
	}
}

// TestChipsOfP300 has two endpoints with one serial and different ids.
func TestChipsOfP300(t *testing.T) {
	dir := t.TempDir()
	describe(t, dir, "p300a")
	chips, err := chipsOf(Spec{Root: dir, Devices: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	if len(chips) != 2 || chips[0].id != chips[1].id+1 || chips[0].name != "0" || chips[1].logical != 1 {
		t.Errorf("chips %+v: want left (1) and right (0) of one board, in the order of addresses", chips)
	}
}

func TestScriptOf(t *testing.T) {
	chips := []chipRef{{"1", 11, 0, false}, {"10", 22, 1, false}, {"1R", 33, 2, true}}
	lines := (&accountant{Script: "open @1;open @10;open @1R"}).commands(chips)
	if want := []string{"open 11", "open 22", "open 33"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	for _, params := range []Params{{"dramm": "1G"}, {"dram": "1G", "script": "quit"}} {
		t.Run(fmt.Sprint(params), func(t *testing.T) {
			if _, err := makeKind("metal", params); err == nil {
				t.Errorf("%v is accepted", params)
			}
		})
	}
}

func TestLedgerMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"dram=1G,cb=1M":             `no setting "cb"`,
		"dram=1G,l1=1G":             "bytes of L1",
		"dram=1G,work=dance":        "dance",
		"dram=lots":                 "dram=lots",
		"dram=33G":                  "does not fit",
		"dram=31G,blocks=9,hole=1G": "does not fit",
		"dram=1G,blocks=0":          "from 1 to 65535",
		"dram=3,banks=4":            "must be enough",
	} {
		t.Run(text, func(t *testing.T) {
			p := Params{}
			for item := range strings.SplitSeq(text, ",") {
				key, value, _ := strings.Cut(item, "=")
				p[key] = value
			}
			if _, err := makeKind("ledger", p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
