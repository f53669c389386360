// Package eventlog keeps what happened on a host: processes that came and
// went, devices that were reset, hung or lost, alerts.
//
// It stands beside the history, which keeps numbers. ttmond writes it, below
// its state directory, one JSON document a line; ttmon events reads it through
// the API. An event is on the disk before anybody is told of it, so what was
// once answered is still there after a crash.
package eventlog
