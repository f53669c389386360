package export

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// askProcessor asks Perfetto's own trace_processor about a trace, in SQL.
func askProcessor(t *testing.T, trace []byte, sql ...string) (answers [][][]any) {
	t.Helper()
	root, err := ttnn.Repository()
	ok(t, err)
	file := filepath.Join(t.TempDir(), "trace")
	ok(t, os.WriteFile(file, trace, 0o600))
	answers, err = programs.QueryTrace(root, file, sql...)
	if errors.Is(err, programs.ErrNoTraceProcessor) {
		t.Skip(err)
	}
	ok(t, err)
	return answers
}

// Perfetto's trace_processor answers questions about a trace with
// what the recording holds.
func TestTraceProcessor(t *testing.T) {
	hermetic.Long(t)
	o := Options{Large: 20 * mib}
	const (
		peaks  = `SELECT t.name, max(c.value) FROM counter c JOIN counter_track t ON c.track_id = t.id GROUP BY t.name`
		tags   = `SELECT name, sum(dur) FROM slice WHERE dur > 0 GROUP BY name`
		marks  = `SELECT count(*) FROM slice WHERE name = 'no room' OR name = 'epoch 1'`
		larges = `SELECT name FROM slice WHERE name LIKE 'alloc %' ORDER BY ts`
		flows  = `SELECT a.name, a.ts, b.name, b.ts FROM flow f JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id ORDER BY a.ts`
		wrong  = `SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0`
	)
	for name, trace := range map[string][]byte{"perfetto": written(t, o, nil, toPerfetto)} {
		t.Run(name, func(t *testing.T) {
			got := askProcessor(t, trace, peaks, tags, marks, larges, flows, wrong)
			most := map[string]float64{}
			for _, row := range got[0] {
				name, _ := row[0].(string)
				most[strings.TrimSuffix(strings.TrimSpace(name), ", B")] = row[1].(float64)
			}
			for chip, want := range map[string]float64{"DRAM, exact, chip 77": 112 * mib, "DRAM, exact, chip 78": 112 * mib} {
				if found := most[chip] + most[chip+", B value"]; found != want {
					t.Errorf("%s: at most %v, want %v; %v", chip, found, want, most)
				}
			}
			lasted := map[string]float64{}
			for _, row := range got[1] {
				lasted[row[0].(string)] = row[1].(float64)
			}
			if lasted["kv-cache"] != 5e9 || lasted["weights"] != 8e9 {
				t.Errorf("slices %v", lasted)
			}
			if n := got[2][0][0].(float64); n != 2 {
				t.Errorf("%v marks", n)
			}
			if len(got[3]) != 2 || got[3][0][0] != "alloc 64 MiB of dram at model.py:41" {
				t.Errorf("large blocks %v", got[3])
			}
			// One lives from second 1 to the end at 9, the other from 3 to 5.
			ends := map[string]float64{"64 MiB of dram at model.py:41": 8e9, "32 MiB of dram at model.py:88": 2e9}
			for _, row := range got[4] {
				block, isAlloc := strings.CutPrefix(row[0].(string), "alloc ")
				freed, isFree := strings.CutPrefix(row[2].(string), "free ")
				if !isAlloc || !isFree || block != freed || row[3].(float64)-row[1].(float64) != ends[block] {
					t.Errorf("a flow of %v", row)
				}
			}
			if len(got[4]) != 2 {
				t.Errorf("%d flows, want 2", len(got[4]))
			}
			if len(got[5]) != 0 {
				t.Errorf("trace_processor complains: %v", got[5])
			}
		})
	}
}
