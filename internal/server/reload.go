package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/ttmon/ttmon/internal/daemon"
)

// awaitReloads reads the configuration again at every hangup.
func (s *Server) awaitReloads(ctx context.Context, hups <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hups:
			if _, err := s.reload(); err != nil {
				s.log.Error("config reload failed; keeping the current configuration", "err", err)
			}
		}
	}
}

// reload reads the configuration again and reports what has changed, a sentence
// for each setting. What cannot change while the server runs is reported every
// time, until it has been restarted.
func (s *Server) reload() (said []string, err error) {
	s.reloads.Lock()
	defer s.reloads.Unlock()
	if s.opt.Configure == nil {
		return nil, errors.New("this server has no configuration file")
	}
	next, err := s.opt.Configure()
	if err != nil {
		return nil, err
	}
	can := s.changeable(&next)
	var todo []*change
	daemon.EachDifference(&s.live, &next, func(name string, old, new reflect.Value) {
		do := can[name]
		if do == nil {
			said = append(said, fmt.Sprintf("%s stays %s until ttmon-server is restarted", name, daemon.FormatSetting(old)))
			return
		}
		old.Set(new)
		said = append(said, name+" has changed")
		if !slices.Contains(todo, do) {
			todo = append(todo, do)
		}
	})
	for _, c := range todo {
		c.do()
	}
	for _, text := range said {
		s.log.Info("config reloaded", "change", text)
	}
	if len(said) == 0 {
		s.log.Info("config reloaded", "change", "none")
	}
	return said, nil
}

// change is what is done once, whichever of its settings has changed.
type change struct{ do func() }

// changeable is what can change while the server runs, by setting.
func (s *Server) changeable(next *Config) map[string]*change {
	can := map[string]*change{}
	add := func(do func(), names ...string) {
		c := &change{do}
		for _, name := range names {
			can[name] = c
		}
	}
	if s.opt.Logs != nil {
		add(func() { s.opt.Logs.SetLevel(next.Log.Level) }, "log.level")
	}
	add(func() { s.recorder.configure(next.Metrics) }, "metrics.workloads", "metrics.processes", "metrics.estimates", "metrics.compat")
	add(func() { s.remotes.configure(next.RemoteWrite) }, "remote_write")
	if s.alerts != nil {
		add(func() { s.alerts.Configure(next.Alerts.Rules, next.Alerts.Interval.Duration) }, "alerts.rules", "alerts.interval")
		add(func() { s.outbox.SetTargets(next.Alerts.targets()) }, "alerts.webhook", "alerts.command", "alerts.mail")
	}
	return can
}
