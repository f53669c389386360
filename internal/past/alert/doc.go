// Package alert decides when to send an alert: rules in PromQL over the
// node's own history, with a time that they must hold, resolving, and
// silences.
//
// It stands behind the history: ttmon-server evaluates the rules every few seconds
// and hands what changes to the notifiers (package notify) and to the event
// log. The rules that are shipped are in rules.toml; the same rules are
// generated as a Prometheus rule file. Only ttmon-server links this package.
package alert
