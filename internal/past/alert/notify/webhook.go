package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/past/alert"
)

// Webhook posts JSON.
type Webhook struct {
	URL    string
	Slack  bool // Slack's form; otherwise Alertmanager's
	Client *http.Client
}

// Name implements Target. A path may be a secret (Slack's is).
func (w *Webhook) Name() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return "webhook"
	}
	h := fnv.New32a()
	h.Write([]byte(w.URL))
	return fmt.Sprintf("webhook %s #%08x", u.Host, h.Sum32())
}

// Send implements Target.
func (w *Webhook) Send(ctx context.Context, m *Message) error {
	body := alertmanager(m)
	if w.Slack {
		body = slack(m)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return permanent{err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(b))
	if err != nil {
		return permanent{err}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "ttmond")
	r.Header.Set("Idempotency-Key", m.ID) // a retry of what was taken can be told
	a, err := w.Client.Do(r)
	if err != nil {
		if e, ok := err.(*url.Error); ok {
			err = e.Err // without the address
		}
		return err
	}
	defer a.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(a.Body, 200))
	switch {
	case a.StatusCode < 300:
		return nil
	case a.StatusCode < 500 && a.StatusCode != http.StatusTooManyRequests && a.StatusCode != http.StatusRequestTimeout:
		return permanent{fmt.Errorf("HTTP status %s: %s", a.Status, strings.TrimSpace(string(said)))}
	}
	return fmt.Errorf("HTTP status %s: %s", a.Status, strings.TrimSpace(string(said)))
}

// alertmanager is the form that receivers of Alertmanager's webhooks read.
func alertmanager(m *Message) any {
	type one struct {
		Status       alert.Status      `json:"status"`
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		StartsAt     time.Time         `json:"startsAt"`
		EndsAt       time.Time         `json:"endsAt"`
		GeneratorURL string            `json:"generatorURL"`
		Fingerprint  string            `json:"fingerprint"`
	}
	var list []one
	for _, a := range m.Alerts {
		labels := maps.Clone(a.Labels)
		labels["host"] = m.Host
		list = append(list, one{
			Status: m.Status, Labels: labels, Annotations: a.Annotations,
			StartsAt: a.ActiveAt.UTC(), EndsAt: a.ResolvedAt.UTC(), Fingerprint: fingerprint(labels),
		})
	}
	group := map[string]string{"alertname": m.Alerts[0].Name(), "host": m.Host}
	return map[string]any{
		"version": "4", "status": m.Status, "receiver": "ttmond", "externalURL": "", "truncatedAlerts": 0,
		"groupKey":    "{}:{alertname=" + m.Alerts[0].Name() + ", host=" + m.Host + "}",
		"groupLabels": group, "commonLabels": common(list[0].Labels, m), "commonAnnotations": map[string]string{}, "alerts": list,
	}
}

// common are the labels that all alerts have.
func common(first map[string]string, m *Message) map[string]string {
	out := maps.Clone(first)
	for _, a := range m.Alerts {
		for k, v := range out {
			if k != "host" && a.Labels[k] != v {
				delete(out, k)
			}
		}
	}
	return out
}

func fingerprint(labels map[string]string) string {
	h := fnv.New64a()
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		h.Write([]byte(k + "\xff" + labels[k] + "\xff"))
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// slack is the form of Slack's incoming webhooks.
func slack(m *Message) any {
	color := map[string]string{"critical": "danger", "warning": "warning"}[m.Alerts[0].Severity()]
	if m.Status == alert.Resolved {
		color = "good"
	}
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	var lines []string
	for _, a := range m.Alerts {
		lines = append(lines, escape(a.Annotations["summary"]))
	}
	return map[string]any{
		"text":        escape(title(m)),
		"attachments": []any{map[string]any{"color": color, "text": strings.Join(lines, "\n"), "fallback": escape(title(m))}},
	}
}

// title is a message in one line.
func title(m *Message) string {
	return fmt.Sprintf("[%s] %s on %s: %s", strings.ToUpper(string(m.Status)), m.Alerts[0].Name(), m.Host, summary(m))
}

func summary(m *Message) string {
	s := m.Alerts[0].Annotations["summary"]
	if n := len(m.Alerts) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// text is a message in full, for mail.
func text(m *Message) string {
	var b strings.Builder
	for _, a := range m.Alerts {
		fmt.Fprintf(&b, "%s\n", a.Annotations["summary"])
		if d := a.Annotations["description"]; d != "" && m.Status == alert.Firing {
			fmt.Fprintf(&b, "  %s\n", d)
		}
		fmt.Fprintf(&b, "  since %s", a.ActiveAt.Local().Format(time.RFC3339))
		if m.Status == alert.Resolved {
			fmt.Fprintf(&b, ", until %s", a.ResolvedAt.Local().Format(time.RFC3339))
		}
		b.WriteString("\n")
		for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
			fmt.Fprintf(&b, "  %s: %s\n", k, a.Labels[k])
		}
		b.WriteString("\n")
	}
	return b.String()
}
