package keep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// LockFile is locked by the program that writes a directory of runs: one Book at a time.
const LockFile = "lock"

// Read lists the runs of a query out of the directory of a Book of another process,
// or of one that has exited. Of runs that had not ended it knows what was last
// written, up to half a minute ago. alive reports whether a process still runs: where
// no Book is written any more, a run whose process has exited has ended unseen.
func Read(dir string, q runs.Query, alive func(host string, id model.ProcessID) bool) (list []runs.Run, more bool, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, false, fmt.Errorf("reading runs: %w", err)
	}
	watched := statedir.Written(dir, LockFile)
	c, err := readCheckpoint(filepath.Join(dir, liveFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	store := OpenStore(dir, 0, 0)
	ended := store.newest()
	var newest []runs.Run
	for i := range c.Live {
		r := &c.Live[i].Run
		if end, ok := ended[r.ID]; ok && !r.Last.After(end) { // written after the checkpoint
			continue
		}
		if !watched && !aliveIn(r, alive) {
			abandon(r, time.Now())
		}
		newest = append(newest, *r)
	}
	return store.find(q, newest)
}

func aliveIn(r *runs.Run, alive func(host string, id model.ProcessID) bool) bool {
	for _, p := range r.Processes {
		if alive(r.Host, model.ProcessID{PID: p.PID, StartTicks: p.StartTicks}) {
			return true
		}
	}
	return false
}

// abandon ends a run that nothing watched to its end.
func abandon(r *runs.Run, now time.Time) {
	if r.End.Kind == runs.Running {
		r.End = runs.Ending{Kind: runs.Unseen, At: now}
	}
}

// readCheckpoint reads the runs that had not ended.
func readCheckpoint(path string) (c checkpoint, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil && c.Schema != checkpointSchema {
		err = fmt.Errorf("schema is %q, not %q", c.Schema, checkpointSchema)
	}
	if err != nil {
		return checkpoint{}, fmt.Errorf("reading unfinished runs from %s: %w", path, err)
	}
	return c, nil
}
