package alert

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Labels that every alert has.
const (
	nameLabel     = "alertname"
	severityLabel = "severity"
)

// Status is how far an alert is.
type Status string

// The statuses. A resolved alert is only reported, once.
const (
	Pending  Status = "pending" // it holds, and not long enough yet
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Alert is a rule that holds for certain labels.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"` // summary and description
	Status      Status            `json:"state"`
	Value       Number            `json:"value"`
	ActiveAt    time.Time         `json:"activeAt"` // since when it has held
	FiredAt     time.Time         `json:"firedAt,omitzero"`
	ResolvedAt  time.Time         `json:"resolvedAt,omitzero"`
	LastTrue    time.Time         `json:"lastTrue"`
	Silenced    bool              `json:"silenced,omitempty"`
	Reason      string            `json:"reason,omitempty"` // of the silence
	Notified    bool              `json:"notified,omitempty"`
}

// Number is a value of PromQL. JSON has no numbers for what is infinite or none:
// there they are strings, "+Inf", "-Inf" and "NaN".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return json.Marshal(strconv.FormatFloat(f, 'f', -1, 64))
	}
	return json.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*n = Number(f)
	return err
}

// Name is the rule's.
func (a *Alert) Name() string { return a.Labels[nameLabel] }

// Severity is the rule's.
func (a *Alert) Severity() string { return a.Labels[severityLabel] }

// key identifies an alert by its labels.
func key(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(k + "\x00" + labels[k] + "\x00")
	}
	return b.String()
}

// sampleOf is one series that an expression returned.
type sampleOf struct {
	labels map[string]string
	value  float64
}

// maxAlerts bounds the alerts of one rule.
const maxAlerts = 1000

// step is the state of a rule after an evaluation: what it found, by what was.
// It returns the alerts that began to fire or resolved.
func step(r *Rule, active map[string]*Alert, found []sampleOf, now time.Time) (changed []*Alert) {
	for i := range found[:min(len(found), maxAlerts)] {
		labels := labelsOf(r, found[i].labels)
		k := key(labels)
		a := active[k]
		if a == nil {
			a = &Alert{Labels: labels, Status: Pending, ActiveAt: now}
			active[k] = a
		}
		a.Value, a.LastTrue = Number(found[i].value), now
		if a.Status == Pending && now.Sub(a.ActiveAt) >= r.For.Duration {
			a.Status, a.FiredAt = Firing, now
			changed = append(changed, a)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(active)) {
		a := active[k]
		switch {
		case a.LastTrue.Equal(now):
		case a.Status == Pending:
			delete(active, k)
		case now.Sub(a.LastTrue) >= r.Keep.Duration:
			delete(active, k)
			a.Status, a.ResolvedAt = Resolved, now
			changed = append(changed, a)
		}
	}
	return changed
}

// labelsOf are an alert's labels: the series', the rule's, and the names.
func labelsOf(r *Rule, series map[string]string) map[string]string {
	labels := maps.Clone(series)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, "__name__")
	maps.Copy(labels, r.Labels)
	labels[nameLabel], labels[severityLabel] = r.Name, r.Severity
	return labels
}
