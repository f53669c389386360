package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/version"
	"github.com/ttmon/ttmon/internal/wire"
)

// Sizes of what is kept around an alert.
const (
	keepBlock  = 10 * time.Second // a block of the ring; what a crash costs
	keepAfter  = time.Minute      // how long it goes on when an alert has fired
	keepMemory = 32 << 20
	keepDir    = "recordings"
)

// lastMinutes holds the last minutes in memory and writes them down when an alert
// fires: how it came to that is what people ask first. The archive's loop
// feeds it and is the only one that waits for the disk.
type lastMinutes struct {
	dir  string
	max  int64
	log  *slog.Logger
	ring *recording.Ring
	last time.Time // of the last block

	mu    sync.Mutex
	fired string // an alert that has not been written down yet

	file  *os.File // what is being appended to; nil: nothing
	until time.Time
}

// newLastMinutes returns nil where nothing is to be kept.
func newLastMinutes(cfg Config, log *slog.Logger) *lastMinutes {
	if cfg.Alerts.Record.Duration <= 0 {
		return nil
	}
	ring, err := recording.NewRing(cfg.Alerts.Record.Duration, keepMemory)
	if err != nil {
		log.Error("cannot record the time before alerts", "err", err)
		return nil
	}
	return &lastMinutes{dir: filepath.Join(cfg.StateDir, keepDir), max: int64(cfg.Alerts.RecordMB) << 20, log: log, ring: ring}
}

// fire asks for what is kept to be written down.
func (k *lastMinutes) fire(name string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fired == "" {
		k.fired = name
	}
}

// take takes in a snapshot and what happened before it.
func (k *lastMinutes) take(s *model.Snapshot, happened []eventlog.Event) {
	if k == nil {
		return
	}
	if k.last.IsZero() {
		k.last = s.Time
		k.describe(s, "kept by ttmon-server")
	}
	k.mu.Lock()
	fired := k.fired
	k.fired = ""
	k.mu.Unlock()
	for _, e := range happened {
		_ = k.ring.Event(e) // it cannot fail: the type is our own
	}
	_ = k.ring.Snapshot(s.Time, wire.Append(nil, s))
	if fired != "" {
		k.describe(s, "alert "+fired)
	}
	if fired == "" && s.Time.Sub(k.last).Abs() < keepBlock && !k.ring.Full() {
		return
	}
	k.last = s.Time
	block := k.ring.Keep(s.Time)
	k.write(block, fired, s.Time)
}

// describe says what the recording is of.
func (k *lastMinutes) describe(s *model.Snapshot, reason string) {
	_ = k.ring.Meta(s.Time, recording.Meta{Version: version.Version, Host: s.Host.Name, Started: s.Time, Reason: reason})
}

// write appends a block to the file that is open, or begins one.
func (k *lastMinutes) write(block []byte, fired string, now time.Time) {
	if k.file != nil {
		if _, err := k.file.Write(block); err != nil {
			k.log.Warn("cannot append to pre-alert recording", "file", k.file.Name(), "err", err)
			k.close()
		}
	}
	switch {
	case fired != "" && k.file == nil:
		k.begin(fired, now)
	case fired != "":
		k.until = now.Add(keepAfter)
	case k.file != nil && now.After(k.until):
		k.close()
	}
}

func (k *lastMinutes) begin(fired string, now time.Time) {
	err := os.MkdirAll(k.dir, 0o700)
	if err == nil {
		k.trim()
		k.file, err = k.ring.Save(filepath.Join(k.dir, now.UTC().Format("20060102T150405.000Z")+"-"+fileName(fired)+".ttrec"))
	}
	if err != nil {
		k.file = nil
		k.log.Warn("cannot save pre-alert recording", "alert", fired, "err", err)
		return
	}
	k.until = now.Add(keepAfter)
	k.log.Info("saved pre-alert recording", "alert", fired, "file", k.file.Name())
}

func (k *lastMinutes) close() {
	if k != nil && k.file != nil {
		k.file.Close()
		k.file = nil
	}
}

// trim makes room for another recording: the oldest go. Names begin with
// their time.
func (k *lastMinutes) trim() {
	for _, path := range recording.Unnamed(k.dir) { // ttmon-server was killed while it wrote
		_ = os.Remove(path)
	}
	list, _ := filepath.Glob(filepath.Join(k.dir, "*.ttrec"))
	slices.Sort(list)
	room := k.max - keepMemory/4
	for _, path := range slices.Backward(list) {
		st, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if room -= st.Size(); room < 0 {
			_ = os.Remove(path)
		}
	}
}

// fileName is the name of an alert as far as a file may have it.
func fileName(s string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	return out[:min(len(out), 60)]
}
