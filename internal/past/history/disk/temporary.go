package disk

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// Temporary is a database of snapshots that are read from elsewhere, for as long as
// a client queries them: the charts of a recording.
type Temporary struct {
	*Store
	walker *prom.Walker
}

// maxTemporarySeries bounds what a recording can make us keep.
const maxTemporarySeries = 100_000

// OpenTemporary opens an empty one below dir, which Close removes.
func OpenTemporary(dir string) (*Temporary, error) {
	s := &Store{opt: Options{MemoryDir: dir, MaxSeries: maxTemporarySeries}.complete(), begun: time.Now(), series: newSeriesSet(maxTemporarySeries)}
	o := baseOptions()
	o.WALSegmentSize = -1 // it is made again, not read again
	o.RetentionDuration, o.MaxBytes = 0, 0
	var err error
	if s.memory, err = s.openDatabase(dir, o); err != nil {
		return nil, fmt.Errorf("opening a database for a recording: %w", err)
	}
	s.stats.InMemory = true
	return &Temporary{s, prom.NewWalker(prom.Options{})}, nil
}

// Add takes in a snapshot.
func (t *Temporary) Add(s *model.Snapshot) {
	t.walker.Observe(s)
	t.AddSnapshot(func(emit prom.Emit) { t.walker.Walk(s, nil, emit) })
	t.Append(s.Time)
}
