package runreport

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

// What JUnit writes is XML, whatever a program calls its files and tags.
func TestJUnit(t *testing.T) {
	const nasty = "a<b>&\"c'\x00\xff\n"
	r := &Report{Method: Ledger, Seconds: 1.5, Chips: []Chip{{ID: 7, Pools: []Pool{{
		Pool: model.DRAM, PoolName: "dram", Peak: 4096, Left: Amount{2048, 2}, LeftBy: []Place{{Tag: nasty, Amount: Amount{2048, 2}}},
	}}}}}
	none := uint64(0)
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Class   string `xml:"classname,attr"`
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(JUnit(r, Limits{Leak: &none, Pools: map[model.Pool]uint64{model.DRAM: 1024}}), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 2 || got.Failures != 2 || got.Skipped != 0 || got.Cases[0].Class != "memory.chip7" || got.Cases[1].Name != "dram peak" {
		t.Errorf("%+v", got)
	}
	if want := "[a<b>&\"c'��\n] 2048 bytes in 2 blocks\n"; got.Cases[0].Failure.Text != want {
		t.Errorf("%q, want %q", got.Cases[0].Failure.Text, want)
	}
	r.Method = Sampled
	got.Cases = nil
	if err := xml.Unmarshal(JUnit(r, Limits{}), &got); err != nil || got.Skipped != 1 || got.Cases[0].Skipped == nil {
		t.Errorf("of samples: %v, %+v", err, got)
	}
}

// The bound of a peak survives the way through JSON.
func TestPoolJSON(t *testing.T) {
	for bound, want := range map[model.Bound]string{
		model.Exact:   `{"pool":"dram","peak_bytes":5,"peak_bound":"exact","peak_at_s":0,"allocated":{"bytes":0,"blocks":0},"held":{"bytes":0,"blocks":0},"left":{"bytes":0,"blocks":0}}`,
		model.AtLeast: `{"pool":"dram","peak_bytes":5,"peak_bound":"at_least","peak_at_s":0,"allocated":{"bytes":0,"blocks":0},"held":{"bytes":0,"blocks":0},"left":{"bytes":0,"blocks":0}}`,
		model.Unsure:  `{"pool":"dram","peak_bytes":5,"peak_bound":"unsure","peak_at_s":0,"allocated":{"bytes":0,"blocks":0},"held":{"bytes":0,"blocks":0},"left":{"bytes":0,"blocks":0}}`,
	} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			p := Pool{PoolName: "dram", Peak: 5, Bound: bound}
			b, err := json.Marshal(p)
			if err != nil || string(b) != want {
				t.Errorf("%s, %v", b, err)
			}
			var got Pool
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestJUnitGrown: the file for CI tells what grew step by step from what was alive
// at the end.
func TestJUnitGrown(t *testing.T) {
	r := &Report{Method: Ledger, Chips: []Chip{{ID: 7, Pools: []Pool{{
		Pool: model.DRAM, PoolName: "dram", Left: Amount{6144, 6}, Grown: Amount{4096, 4},
		LeftBy: []Place{{Tag: "cache", Grew: true, Amount: Amount{4096, 4}}, {Tag: "weights", Amount: Amount{2048, 2}}},
	}}}}}
	none := uint64(0)
	got := string(JUnit(r, Limits{Leak: &none}))
	for _, want := range []string{
		`message="6144 bytes in 6 blocks left behind, of which 4096 bytes in 4 blocks grew step by step"`,
		"[cache] 4096 bytes in 4 blocks, grew step by step&#10;", "[weights] 2048 bytes in 2 blocks&#10;",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q:\n%s", want, got)
		}
	}
}
