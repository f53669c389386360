package disk

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// samples reads a series back.
func samples(t *testing.T, s *Store, from, to time.Time, name, device string) map[int64]float64 {
	t.Helper()
	q, err := s.Querier(from.UnixMilli(), to.UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	found := q.Select(t.Context(), true, nil,
		labels.MustNewMatcher(labels.MatchEqual, "__name__", name), labels.MustNewMatcher(labels.MatchEqual, "device", device))
	out := map[int64]float64{}
	for found.Next() {
		for it := found.At().Iterator(nil); it.Next() != chunkenc.ValNone; {
			at, v := it.At()
			out[at] = v
		}
	}
	return out
}

// What went in comes out, however long ago it was; a device that is no longer there
// ends; nothing is left behind.
func TestTemporary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "charts")
	s, err := OpenTemporary(dir)
	if err != nil {
		t.Fatal(err)
	}
	const seconds = 367
	for i := range seconds {
		snap := tuitest.Well(2, i)
		if i >= seconds-5 {
			snap.Devices = snap.Devices[:1]
		}
		for range 2 { // the same one again is left out
			s.Add(snap)
		}
	}
	from, to := tuitest.Start, tuitest.Start.Add(seconds*time.Second)
	got := samples(t, s.Store, from, to, "tenstorrent_core_power_watts", "0")
	if len(got) != seconds {
		t.Errorf("%d samples of %d", len(got), seconds)
	}
	for i := range seconds {
		at := tuitest.Start.Add(time.Duration(i) * time.Second)
		if want, _ := tuitest.Well(2, i).Devices[0].Power.Get(); got[at.UnixMilli()] != want {
			t.Fatalf("second %d: %v, want %v", i, got[at.UnixMilli()], want)
		}
	}
	gone := samples(t, s.Store, from, to, "tenstorrent_core_power_watts", "1")
	end := tuitest.Start.Add((seconds - 5) * time.Second).UnixMilli()
	if len(gone) != seconds-4 || math.Float64bits(gone[end]) != value.StaleNaN {
		t.Errorf("the device that left has %d samples, the last %v", len(gone), gone[end])
	}
	s.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
