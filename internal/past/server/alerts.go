package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/eventlog/watch"
	"github.com/ttmon/ttmon/internal/past/alert"
	"github.com/ttmon/ttmon/internal/past/alert/notify"
)

// targets are those that are configured.
func (c *Alerts) targets() (list []notify.Target) {
	client := &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, w := range c.Webhook {
		list = append(list, &notify.Webhook{URL: w.URL, Slack: w.Format == "slack", Client: client})
	}
	for _, r := range c.Command {
		list = append(list, &notify.Command{Run: r.Run, User: unprivileged(r.User)})
	}
	for _, m := range c.Mail {
		sendmail := m.Sendmail
		if sendmail == "" {
			sendmail = "/usr/sbin/sendmail"
		}
		list = append(list, &notify.Mail{Sendmail: sendmail, From: m.From, To: m.To, User: unprivileged(m.User)})
	}
	return list
}

func unprivileged(user string) string {
	if user == "" {
		return "nobody"
	}
	return user
}

// prepareAlerts makes the rules. An invalid file was refused at the start; one
// that has become invalid since is logged, and the built-in rules apply.
func (s *Server) prepareAlerts() {
	o := alert.Options{
		Path: s.cfg.Alerts.Rules, StateFile: filepath.Join(s.cfg.StateDir, "alerts.json"), Interval: s.cfg.Alerts.Interval.Duration,
		Queryable: s.archive, Changed: s.alertChanged, Log: s.log,
	}
	s.outbox = notify.New(filepath.Join(s.cfg.StateDir, "alerts-outbox.json"), s.cfg.Alerts.targets(), s.log)
	o.Send = func(list []*alert.Alert) { s.outbox.Put(s.hostName(), list) }
	m, err := alert.New(o)
	if err != nil {
		s.log.Error("invalid alert rules file; using built-in rules only", "err", err)
		o.Path = ""
		if m, err = alert.New(o); err != nil {
			s.log.Error("cannot evaluate alert rules", "err", err)
			return
		}
	}
	s.alerts = m
}

// runAlerts evaluates rules once there is a history, and sends.
func (s *Server) runAlerts(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-s.archive.ready:
		}
		s.alerts.Run(ctx)
		return nil
	})
	g.Go(func() error { s.outbox.Run(ctx); return nil })
}

func (s *Server) hostName() string {
	if snap := s.feed.Latest(); snap != nil && snap.Host.Name != "" {
		return snap.Host.Name
	}
	name, _ := os.Hostname()
	return name
}

// alertChanged puts alerts into the log and the event log.
func (s *Server) alertChanged(list []*alert.Alert) {
	var events []model.Event
	for _, a := range list {
		e := model.Event{
			Time: a.FiredAt, Kind: model.EventAlert, Level: words.AlertLevel(a.Severity()), Short: a.Name(), Text: a.Name() + ": " + words.Escape(a.Annotations["summary"]),
		}
		if pci := a.Labels["pci"]; pci != "" {
			e.Devices = []string{pci}
		}
		if a.Status == alert.Resolved {
			e.Time, e.Level, e.Short = a.ResolvedAt, model.Info, a.Name()+" over"
			e.Text = "over: " + e.Text
			s.log.Info("alert resolved", "alert", a.Name(), "summary", a.Annotations["summary"], "silenced", a.Silenced)
		} else {
			s.archive.recordings.fire(a.Name())
			s.log.Warn("alert firing", "alert", a.Name(), "severity", a.Severity(), "summary", a.Annotations["summary"], "silenced", a.Silenced)
		}
		if snap := s.feed.Latest(); snap != nil {
			e.Values, e.Bounds = watch.Values(snap, e.Devices)
		}
		events = append(events, e)
	}
	s.archive.appendEvents(events...)
}

// firing are the firing alerts, for a snapshot.
func (s *Server) firing() (list []model.Alert) {
	if s.alerts == nil {
		return nil
	}
	for _, a := range s.alerts.Active() {
		if a.Status == alert.Firing {
			list = append(list, model.Alert{
				Name: a.Name(), Severity: a.Severity(), Summary: a.Annotations["summary"], BusID: a.Labels["pci"], Since: a.ActiveAt, Silenced: a.Silenced,
				Condition: model.ConditionKind(a.Labels["condition"]),
			})
		}
	}
	return list
}

// apiAlerts is the answer of /v1/alerts.
func (s *Server) apiAlerts() any {
	list := s.alerts.Active()
	if list == nil {
		list = []*alert.Alert{}
	}
	return map[string]any{"schema": "ttmon.alerts/1", "alerts": list}
}
