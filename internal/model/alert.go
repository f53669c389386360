package model

import "time"

// Alert is a rule of ttmond's that holds now. Only a daemon has any.
type Alert struct {
	Name     string // of the rule: "ChipHung"
	Severity string // info, warning or critical
	Summary  string // a sentence about this very case; raw: escape it before it reaches a terminal
	BusID    string // of the device that it is about; empty: the host
	// Condition is the kind of condition that the rule is over; empty: it is
	// over something else.
	Condition ConditionKind
	Since     time.Time
	Silenced  bool // no target is notified
}
