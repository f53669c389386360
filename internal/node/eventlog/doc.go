// Package eventlog has what happens on a host: processes that come and go, devices
// that are reset, hung or lost, alerts; and a log of it.
//
// ttmond keeps its last events in such a log for a ttmon-server that is away
// (package backlog), one JSON document a line; the server keeps them in its journal.
// An event is on the disk before it is sent, so what was once sent is still there
// after a crash.
package eventlog
