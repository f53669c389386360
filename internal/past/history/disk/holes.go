package disk

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/tsdb"

	"github.com/ttmon/ttmon/internal/base/replace"
)

// Where a block was set aside there is a hole, whose time is answered from the
// coarse database. The holes are written down beside the database: what is
// next to them does not always tell (the newest samples begin, for the
// database, where the last block ends).

const maxHoles = 1000

func holesFile(dir string) string { return dir + ".holes" }

// loadHoles are those of a database.
func loadHoles(dir string) (list []span) {
	b, err := os.ReadFile(holesFile(dir))
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	return list
}

// addHole writes one more down.
func addHole(dir string, part span) { _ = saveHoles(dir, append(loadHoles(dir), part)) }

// saveHoles replaces the file in one step. A failure costs what a hole costs
// after the next start.
func saveHoles(dir string, list []span) error {
	b, err := json.Marshal(list[max(0, len(list)-maxHoles):])
	if err != nil {
		return err
	}
	return replace.File(holesFile(dir), b, 0o600)
}

// timeOf is the time of a block by its description; not ok if that is damaged.
func timeOf(block string) (s span, ok bool) {
	b, err := os.ReadFile(filepath.Join(block, "meta.json"))
	var m tsdb.BlockMeta
	if err != nil || json.Unmarshal(b, &m) != nil || m.MinTime >= m.MaxTime {
		return s, false
	}
	return span{m.MinTime, m.MaxTime - 1}, true
}
