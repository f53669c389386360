package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/journal"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// What is kept around an alert.
const (
	keepEvery = 10 * time.Second // how often a recording is extended
	keepAfter = time.Minute      // how long after an alert has fired
	keepDir   = "recordings"
	keepRoom  = 8 << 20 // for the recording that is about to be made
)

// alertRecordings copies the minutes around an alert out of the journal: how it
// came to that is what people ask first. The archive's loop feeds it and is the
// only one that waits for the disk.
type alertRecordings struct {
	dir    string
	before time.Duration
	max    int64
	log    *slog.Logger

	mu    sync.Mutex
	fired string // an alert that is not in a recording yet

	copy     *journal.Copy // what is being extended; nil: nothing
	until    time.Time
	extended time.Time
}

// newAlertRecordings returns nil where nothing is to be kept.
func newAlertRecordings(cfg Config, log *slog.Logger) *alertRecordings {
	if cfg.Alerts.Record.Duration <= 0 {
		return nil
	}
	return &alertRecordings{dir: filepath.Join(cfg.StateDir, keepDir), before: cfg.Alerts.Record.Duration, max: int64(cfg.Alerts.RecordMB) << 20, log: log}
}

// fire asks for a recording of an alert.
func (k *alertRecordings) fire(name string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fired == "" {
		k.fired = name
	}
}

// follow begins, extends or ends a recording, when the journal has a snapshot.
func (k *alertRecordings) follow(j *journal.Journal, s *model.Snapshot) {
	if k == nil || j == nil {
		return
	}
	k.mu.Lock()
	fired := k.fired
	k.fired = ""
	k.mu.Unlock()
	if fired != "" {
		k.until = s.Time.Add(keepAfter)
		if k.copy == nil {
			k.startRecording(j, s, fired)
			return
		}
	}
	over := s.Time.After(k.until)
	if k.copy == nil || !over && s.Time.Sub(k.extended).Abs() < keepEvery {
		return
	}
	k.extended = s.Time
	if err := k.copy.Extend(); err != nil {
		k.log.Warn("cannot extend pre-alert recording", "err", err)
		over = true
	}
	if over {
		k.close()
	}
}

func (k *alertRecordings) startRecording(j *journal.Journal, s *model.Snapshot, fired string) {
	path := filepath.Join(k.dir, s.Time.UTC().Format("20060102T150405.000Z")+"-"+fileName(fired)+".ttrec")
	err := os.MkdirAll(k.dir, 0o700)
	if err == nil {
		k.trim()
		k.copy, err = j.Copy(path, s.Time.Add(-k.before), recording.Meta{
			Version: version.Version, Host: s.Host.Name, Started: s.Time.Add(-k.before), Reason: "alert " + fired,
		})
	}
	if err != nil {
		k.copy = nil
		k.log.Warn("cannot save pre-alert recording", "alert", fired, "err", err)
		return
	}
	k.extended = s.Time
	k.log.Info("saved pre-alert recording", "alert", fired, "file", path)
}

func (k *alertRecordings) close() {
	if k != nil && k.copy != nil {
		_ = k.copy.Close()
		k.copy = nil
	}
}

// trim makes room for another recording: the oldest go. Names begin with
// their time.
func (k *alertRecordings) trim() {
	for _, path := range recording.Unnamed(k.dir) { // ttmon-server was killed while it wrote
		_ = os.Remove(path)
	}
	list, _ := filepath.Glob(filepath.Join(k.dir, "*.ttrec"))
	slices.Sort(list)
	room := k.max - keepRoom
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
