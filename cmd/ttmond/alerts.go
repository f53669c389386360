package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/alert"
	"github.com/ttmon/ttmon/internal/alert/notify"
	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

type alertsConfig struct {
	Enabled  bool            `toml:"enabled" comment:"Evaluate the alert rules. They need the history."`
	Rules    string          `toml:"rules" comment:"A file of rules and silences of your own; it is read again when it changes."`
	Interval duration        `toml:"interval" comment:"Time between two evaluations."`
	Record   duration        `toml:"record" comment:"Keep so much of the time before an alert as a recording, for ttmon replay, such as 10m; 0s for none."`
	RecordMB int             `toml:"record_mb" comment:"What those recordings may take on disk; the oldest go."`
	Webhook  []webhookConfig `toml:"webhook,omitempty" comment:"Where alerts are posted: url, and format alertmanager or slack."`
	Command  []commandConfig `toml:"command,omitempty" comment:"What is run for alerts: run = [program, arguments...], as user."`
	Mail     []mailConfig    `toml:"mail,omitempty" comment:"Who gets alerts by mail: to = [addresses], from, sendmail."`
}

type webhookConfig struct {
	URL    string `toml:"url"`
	Format string `toml:"format"`
}

type commandConfig struct {
	Run  []string `toml:"run"`
	User string   `toml:"user"`
}

type mailConfig struct {
	To       []string `toml:"to"`
	From     string   `toml:"from"`
	Sendmail string   `toml:"sendmail"`
	User     string   `toml:"user"`
}

func defaultAlerts() alertsConfig {
	return alertsConfig{Enabled: true, Rules: filepath.Join(filepath.Dir(defaultConfigPath()), "alerts.toml"), Interval: duration{5 * time.Second}, RecordMB: 200}
}

func (c *alertsConfig) check() error {
	if c.Interval.Duration < 100*time.Millisecond || c.Interval.Duration > time.Hour {
		return fmt.Errorf("alerts.interval: %v is not between 100ms and 1h", c.Interval)
	}
	if err := c.checkRecord(); err != nil {
		return err
	}
	if _, err := alert.Load(c.Rules); err != nil {
		return fmt.Errorf("alerts.rules: %w", err)
	}
	for i, w := range c.Webhook {
		u, err := url.Parse(w.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("alerts.webhook %d: %q is not an address like https://example.org/hook", i+1, w.URL)
		}
		switch w.Format {
		case "", "alertmanager", "slack":
		default:
			return fmt.Errorf("alerts.webhook %d: format %q is neither alertmanager nor slack", i+1, w.Format)
		}
	}
	for i, r := range c.Command {
		if len(r.Run) == 0 || !filepath.IsAbs(r.Run[0]) {
			return fmt.Errorf("alerts.command %d: run needs a program by its full path", i+1)
		}
	}
	for i, m := range c.Mail {
		if len(m.To) == 0 {
			return fmt.Errorf("alerts.mail %d: to is empty", i+1)
		}
		for _, to := range append(m.To, m.From) {
			if strings.HasPrefix(to, "-") || strings.ContainsAny(to, "\r\n\x00") {
				return fmt.Errorf("alerts.mail %d: %q is not an address", i+1, to)
			}
		}
	}
	return nil
}

// targets are those that are configured.
func (c *alertsConfig) targets() (list []notify.Target) {
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

// prepareAlerts makes the rules. A file that is wrong was refused at the
// start; one that has become so since is said, and the shipped ones hold.
func (d *ttmond) prepareAlerts() {
	o := alert.Options{
		Path: d.cfg.Alerts.Rules, StateFile: filepath.Join(d.cfg.StateDir, "alerts.json"), Interval: d.cfg.Alerts.Interval.Duration,
		Queryable: d.archive, Changed: d.alertChanged, Log: d.log,
	}
	d.outbox = notify.New(filepath.Join(d.cfg.StateDir, "alerts-outbox.json"), d.cfg.Alerts.targets(), d.log)
	o.Send = func(list []*alert.Alert) { d.outbox.Put(d.hostName(), list) }
	m, err := alert.New(o)
	if err != nil {
		d.log.Error("only the shipped alert rules hold", "err", err)
		o.Path = ""
		if m, err = alert.New(o); err != nil {
			d.log.Error("there are no alerts", "err", err)
			return
		}
	}
	d.alerts = m
	d.collector.alerts = d.firing
}

// runAlerts evaluates rules once there is a history, and sends.
func (d *ttmond) runAlerts(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-d.archive.ready:
		}
		d.alerts.Run(ctx)
		return nil
	})
	g.Go(func() error { d.outbox.Run(ctx); return nil })
}

func (d *ttmond) hostName() string {
	if s := d.collector.feed.Latest(); s != nil && s.Host.Name != "" {
		return s.Host.Name
	}
	name, _ := os.Hostname()
	return name
}

// alertChanged puts alerts into the daemon's log and the event log.
func (d *ttmond) alertChanged(list []*alert.Alert) {
	var events []eventlog.Event
	for _, a := range list {
		e := eventlog.Event{
			Time: a.FiredAt, Kind: eventlog.KindAlert, Level: a.Severity(), Short: a.Name(), Text: a.Name() + ": " + words.Escape(a.Annotations["summary"]),
		}
		if pci := a.Labels["pci"]; pci != "" {
			e.Devices = []string{pci}
		}
		if a.Status == alert.Resolved {
			e.Time, e.Level, e.Short = a.ResolvedAt, eventlog.Info, a.Name()+" over"
			e.Text = "over: " + e.Text
			d.log.Info("an alert is over", "alert", a.Name(), "summary", a.Annotations["summary"], "silenced", a.Silenced)
		} else {
			d.archive.recent.fire(a.Name())
			d.log.Warn("an alert fires", "alert", a.Name(), "severity", a.Severity(), "summary", a.Annotations["summary"], "silenced", a.Silenced)
		}
		if s := d.collector.feed.Latest(); s != nil {
			e.Values, e.Bounds = values(s, e.Devices)
		}
		events = append(events, e)
	}
	d.archive.tell(events...)
	d.archive.recent.note(events)
}

// firing are the alerts that a snapshot tells of.
func (d *ttmond) firing() (list []model.Alert) {
	if d.alerts == nil {
		return nil
	}
	for _, a := range d.alerts.Active() {
		if a.Status == alert.Firing {
			list = append(list, model.Alert{
				Name: a.Name(), Severity: a.Severity(), Summary: a.Annotations["summary"], BusID: a.Labels["pci"], Since: a.ActiveAt, Silenced: a.Silenced,
			})
		}
	}
	return list
}

// apiAlerts is the answer of /v1/alerts.
func (d *ttmond) apiAlerts() any {
	list := d.alerts.Active()
	if list == nil {
		list = []*alert.Alert{}
	}
	return map[string]any{"schema": "ttmon.alerts/1", "alerts": list}
}
