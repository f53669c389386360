package main

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/runs/own"
	"github.com/ttmon/ttmon/internal/view/tui"
)

// keepRuns has the runs of this host kept while the screen is open, unless a
// ttmon-server keeps them.
func (s *source) keepRuns(getenv func(string) string, interval time.Duration) {
	if s.host == nil {
		return
	}
	dir := own.Dir(getenv, s.host.Simulated())
	if dir == "" {
		return
	}
	k := own.Start(own.Options{Dir: dir, Interval: interval, Kept: s.host.KeepsRuns})
	closeHost := s.close
	s.Source, s.close = &kept{s.Source, k}, func() { k.Close(); closeHost() }
}

// kept is a source whose snapshots are taken into the account of runs, too.
type kept struct {
	tui.Source
	keeper *own.Keeper
}

func (k *kept) Next(ctx context.Context) (*model.Snapshot, error) {
	s, err := k.Source.Next(ctx)
	if err == nil && s != nil {
		k.keeper.Observe(s)
	}
	return s, err
}
