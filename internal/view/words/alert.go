package words

import "github.com/ttmon/ttmon/internal/model"

// alertCode is the code of notices that are alerts.
const alertCode = "alert"

// alerts says which rules of ttmond hold; those that were silenced are in the
// log only.
func (l *list) alerts() {
	for i := range l.snap.Alerts {
		if a := &l.snap.Alerts[i]; !a.Silenced {
			l.notices = append(l.notices, Notice{Level: AlertLevel(a.Severity), Code: alertCode, Text: Alert(a)})
		}
	}
}

// Alert is an alert in a line.
func Alert(a *model.Alert) string { return "alert " + Escape(a.Name) + ": " + Escape(a.Summary) }

// AlertLevel is how much a severity matters.
func AlertLevel(severity string) Level {
	switch severity {
	case "critical":
		return Critical
	case "warning":
		return Warning
	}
	return Info
}
