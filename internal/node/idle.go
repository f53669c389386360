package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/collect"
)

// idleFile keeps what boards draw at idle over a restart: under load it could not be
// learned again.
type idleFile struct {
	path    string
	log     *slog.Logger
	kept    []collect.IdlePower
	writing chan struct{} // full while a file is written: a disk may be slow, and collecting does not wait for it
}

// newIdleFile reads what a ttmond before has kept.
func newIdleFile(dir string, log *slog.Logger) *idleFile {
	f := &idleFile{path: filepath.Join(dir, "idle.json"), log: log, writing: make(chan struct{}, 1)}
	b, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(b, &f.kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.kept = nil
		log.Warn("cannot read idle power; learning it again", "err", err)
	}
	return f
}

// keep writes what is known, if it has changed and no write is under way.
func (f *idleFile) keep(list []collect.IdlePower) {
	if slices.Equal(list, f.kept) {
		return
	}
	select {
	case f.writing <- struct{}{}:
	default:
		return // the next sweep tries again
	}
	f.kept = list
	go func() {
		defer func() { <-f.writing }()
		b, err := json.Marshal(list)
		if err == nil {
			err = replace.File(f.path, b, 0o600)
		}
		if err != nil {
			f.log.Warn("cannot write idle power", "err", err)
		}
	}()
}
