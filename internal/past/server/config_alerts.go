package server

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/past/alert"
)

// Alerts configures which rules are evaluated, and who is notified.
type Alerts struct {
	Enabled  bool            `toml:"enabled" comment:"Evaluate the alert rules. They need the history."`
	Rules    string          `toml:"rules" comment:"A file of rules and silences of your own; it is read again when it changes."`
	Interval daemon.Duration `toml:"interval" comment:"Time between two evaluations."`
	Record   daemon.Duration `toml:"record" comment:"Keep so much of the time before an alert as a recording, for ttmon replay, such as 10m; 0s for none."`
	RecordMB int             `toml:"record_mb" comment:"What those recordings may take on disk; the oldest go."`
	Webhook  []Webhook       `toml:"webhook,omitempty" comment:"Where alerts are posted: url, and format alertmanager or slack."`
	Command  []Command       `toml:"command,omitempty" comment:"What is run for alerts: run = [program, arguments...], as user."`
	Mail     []Mail          `toml:"mail,omitempty" comment:"Who gets alerts by mail: to = [addresses], from, sendmail."`
}

// Webhook is where alerts are posted.
type Webhook struct {
	URL    string `toml:"url"`
	Format string `toml:"format"`
}

// Command is a program that is run for alerts.
type Command struct {
	Run  []string `toml:"run"`
	User string   `toml:"user"`
}

// Mail is who gets alerts by mail.
type Mail struct {
	To       []string `toml:"to"`
	From     string   `toml:"from"`
	Sendmail string   `toml:"sendmail"`
	User     string   `toml:"user"`
}

func defaultAlerts(rules string) Alerts {
	return Alerts{Enabled: true, Rules: rules, Interval: daemon.Duration{Duration: 5 * time.Second}, RecordMB: 200}
}

func (c *Alerts) check() error {
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

func (c *Alerts) checkRecord() error {
	if d := c.Record.Duration; d != 0 && (d < time.Minute || d > time.Hour) {
		return fmt.Errorf("alerts.record: %v is not between 1m and 1h, nor 0s for nothing", c.Record)
	}
	if c.RecordMB < 16 || c.RecordMB > 1<<20 {
		return fmt.Errorf("alerts.record_mb: %d is not between 16 and 1048576", c.RecordMB)
	}
	return nil
}
