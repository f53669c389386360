package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// TestStale: what is not known is null with its reason, and a region is
// removable only if it was looked into, has ghosts, and nothing blocks it.
func TestStale(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	staleSlot := model.StaleSlot{PID: 4242, Name: "py\x1bthon", Updated: now.Add(-time.Minute)}
	staleSlot.Bytes[model.DRAM] = model.BoundBytes(1<<30, model.Unsure)
	staleSlot.Bytes[model.L1] = model.NoBytes(model.Implausible)
	future := staleSlot
	future.Updated = now.Add(time.Hour)
	for _, indent := range []bool{false, true} {
		text := wire.AppendStale(nil, &wire.Stale{Time: now, Simulated: true, Regions: []model.Leftover{
			{Region: "/dev/shm/a", ChipID: 1<<63 + 1, Device: 3, StaleSlots: []model.StaleSlot{staleSlot, future}},
			{Region: "/dev/shm/b", Device: model.NoDevice, Denied: true, Owner: 1000},
			{Region: "/dev/shm/c", Device: 1, Blocked: &model.Doubt{Kind: model.RegionInUse, PIDs: []int{7}}, StaleSlots: []model.StaleSlot{staleSlot}, Unseen: []model.StaleSlot{future}},
		}}, indent)
		var got struct {
			Schema    string
			Simulated bool
			Regions   []struct {
				ChipID     string `json:"chip_id"`
				Index      *int
				Removable  bool
				Blocked    string
				Kind       *string `json:"blocked_kind"`
				Unseen     []struct{ PID int }
				StaleSlots []struct {
					Name    string
					DRAM    *uint64  `json:"dram_bytes"`
					Bound   string   `json:"dram_bound"`
					L1      *uint64  `json:"l1_bytes"`
					Age     *float64 `json:"age_s"`
					Missing map[string]string
				} `json:"ghosts"`
			}
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got.Schema != wire.StaleSchema || !got.Simulated || len(got.Regions) != 3 {
			t.Fatalf("%s", text)
		}
		a, b, c := got.Regions[0], got.Regions[1], got.Regions[2]
		if a.ChipID != "9223372036854775809" || *a.Index != 3 || b.Index != nil {
			t.Errorf("ids: %s", text)
		}
		if !a.Removable || b.Removable || c.Removable {
			t.Errorf("removable: %s", text)
		}
		if a.Blocked != "" || a.Kind != nil || c.Blocked != "in use by process 7" || *c.Kind != "region_in_use" || len(c.Unseen) != 1 {
			t.Errorf("what blocks: %s", text)
		}
		g := a.StaleSlots[0]
		if g.Name != staleSlot.Name || *g.DRAM != 1<<30 || g.Bound != "unsure" || g.L1 != nil || g.Missing["l1_bytes"] == "" || *g.Age != 60 {
			t.Errorf("a ghost: %s", text)
		}
		if a.StaleSlots[1].Age != nil {
			t.Errorf("a clock that was set back gives an age of %v", *a.StaleSlots[1].Age)
		}
	}
}

// TestStaleRoundTrip: what a ttmond tells is what it knows.
func TestStaleRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	staleSlot := model.StaleSlot{Region: "/dev/shm/a", ChipID: 1<<63 + 1, Device: 3, PID: 4242, Name: "python", Updated: now.Add(-time.Minute), Mapped: true}
	staleSlot.Bytes[model.DRAM] = model.BoundBytes(1<<30, model.Unsure)
	staleSlot.Bytes[model.L1] = model.NoBytes(model.Implausible)
	want := &wire.Stale{Time: now, Simulated: true, Regions: []model.Leftover{
		{
			Region: "/dev/shm/a", ChipID: 1<<63 + 1, Device: 3, StaleSlots: []model.StaleSlot{staleSlot}, Unseen: []model.StaleSlot{staleSlot},
			Blocked: &model.Doubt{Kind: model.RegionInUse, PIDs: []int{7}, Region: "/dev/shm/a"},
		},
		{Region: "/dev/shm/b", ChipID: 5, Device: model.NoDevice, Denied: true, Owner: 1000},
	}}
	got, err := wire.DecodeStale(wire.AppendStale(nil, want, false))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "[]", `{"regions":5}`, `{"regions":[{"chip_id":"x"}]}`} {
		if s, err := wire.DecodeStale([]byte(text)); err == nil {
			t.Errorf("%q was read as %+v", text, s)
		}
	}
}
