package words

import (
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// alertCode is the code of notices that are alerts.
const alertCode = "alert"

// alerts says which rules of ttmond hold about something that is no trouble in
// a row of its own; those that were silenced are in the log only.
func (l *list) alerts() {
	for _, a := range assess.Of(l.snap).Alerts() {
		l.notices = append(l.notices, Notice{Level: AlertLevel(a.Severity), Code: alertCode, Text: Alert(a)})
	}
}

// conditions says which conditions are worth knowing, and no trouble. Memory of
// the dead is said with its owners.
func (l *list) conditions() {
	for _, c := range assess.Of(l.snap).Conditions() {
		if c.Level < Warning && c.Kind != model.ConditionStaleMemory && c.Kind != model.ConditionMemoryFull {
			l.add(c.Level, string(c.Kind), c.Device, Facts(l.snap, &c))
		}
	}
}

// Alert is an alert in a line.
func Alert(a *model.Alert) string { return "alert " + Escape(a.Name) + ": " + Escape(a.Summary) }

// AlertLevel is how much a severity matters.
func AlertLevel(severity string) Level {
	if l, ok := model.ParseLevel(severity); ok && l != model.Fine {
		return l
	}
	return Info
}
