package server

import (
	"errors"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// reload reads the configuration again and reports what has changed, a sentence
// for each setting.
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
	return s.changeable(&next).Apply(&s.live, &next, "ttmon-server is restarted", s.log), nil
}

// changeable is what can change while the server runs, by setting.
func (s *Server) changeable(next *Config) daemon.Changes {
	can := daemon.Changes{}
	if s.opt.Logs != nil {
		can.On(func() { s.opt.Logs.SetLevel(next.Log.Level) }, "log.level")
	}
	can.On(func() { s.recorder.configure(next.Metrics) }, "metrics.workloads", "metrics.processes", "metrics.estimates")
	can.On(func() { s.remotes.configure(next.RemoteWrite) }, "remote_write")
	if s.alerts != nil {
		can.On(func() { s.alerts.Configure(next.Alerts.Rules, next.Alerts.Interval.Duration) }, "alerts.rules", "alerts.interval")
		can.On(func() { s.outbox.SetTargets(next.Alerts.targets()) }, "alerts.webhook", "alerts.command", "alerts.mail")
	}
	return can
}
