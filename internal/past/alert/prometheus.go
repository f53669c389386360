package alert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RuleFile is the set as a rule file for Prometheus.
func (s *Set) RuleFile() []byte {
	var b strings.Builder
	b.WriteString("# Generated from internal/past/alert/rules.toml: make update\ngroups:\n  - name: ttmon\n    rules:\n")
	for i := range s.Rules {
		r := &s.Rules[i]
		fmt.Fprintf(&b, "      - alert: %s\n        expr: |-\n", r.Name)
		for line := range strings.SplitSeq(strings.TrimSpace(r.Expr), "\n") {
			b.WriteString("          " + line + "\n")
		}
		if r.For.Duration > 0 {
			fmt.Fprintf(&b, "        for: %s\n", promDuration(r.For.Duration))
		}
		if r.Keep.Duration > 0 {
			fmt.Fprintf(&b, "        keep_firing_for: %s\n", promDuration(r.Keep.Duration))
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n", r.Severity)
		for _, k := range sortedKeys(r.Labels) {
			fmt.Fprintf(&b, "          %s: %s\n", k, strconv.Quote(r.Labels[k]))
		}
		fmt.Fprintf(&b, "        annotations:\n          summary: %s\n          description: %s\n", quote(r.Summary), quote(r.Description))
	}
	return []byte(b.String())
}

// quote writes a YAML string in single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// promDuration writes 2m0s as 2m.
func promDuration(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// PrometheusAlerts is the answer of Prometheus's /api/v1/alerts.
func (m *Manager) PrometheusAlerts() any {
	list := []map[string]any{}
	for _, a := range m.Active() {
		list = append(list, promAlert(a))
	}
	return map[string]any{"alerts": list}
}

func promAlert(a *Alert) map[string]any {
	return map[string]any{
		"labels": a.Labels, "annotations": a.Annotations, "state": string(a.Status),
		"activeAt": a.ActiveAt.UTC(), "value": strconv.FormatFloat(float64(a.Value), 'e', -1, 64),
	}
}

// PrometheusRules is the answer of Prometheus's /api/v1/rules.
func (m *Manager) PrometheusRules() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	rules := []map[string]any{}
	for i := range m.set.Rules {
		r := &m.set.Rules[i]
		h := m.health[r.Name]
		state, alerts := "inactive", []map[string]any{}
		for _, k := range sortedKeys(m.active[r.Name]) {
			a := m.active[r.Name][k].copy()
			alerts = append(alerts, promAlert(a))
			if a.Status == Firing || state == "inactive" {
				state = string(a.Status)
			}
		}
		labels := map[string]string{severityLabel: r.Severity}
		maps.Copy(labels, r.Labels)
		rule := map[string]any{
			"type": "alerting", "name": r.Name, "query": strings.TrimSpace(r.Expr), "duration": r.For.Seconds(), "keepFiringFor": r.Keep.Seconds(),
			"labels":      labels,
			"annotations": map[string]string{"summary": r.Summary, "description": r.Description},
			"state":       state, "alerts": alerts, "health": "unknown", "evaluationTime": 0.0, "lastEvaluation": time.Time{},
		}
		if h != nil {
			rule["health"], rule["evaluationTime"], rule["lastEvaluation"] = "ok", h.took.Seconds(), h.at.UTC()
			if h.err != nil {
				rule["health"], rule["lastError"] = "err", h.err.Error()
			}
		}
		rules = append(rules, rule)
	}
	file, interval := m.path, m.interval
	if file == "" {
		file = "shipped"
	}
	group := map[string]any{"name": "ttmon", "file": file, "rules": rules, "interval": interval.Seconds(), "limit": 0, "evaluationTime": 0.0, "lastEvaluation": time.Time{}}
	return map[string]any{"groups": []any{group}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
