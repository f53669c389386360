// Package remotewrite sends the node's samples to a Prometheus-compatible
// engine (Prometheus, Thanos, Mimir, VictoriaMetrics), by Prometheus's remote
// write protocol, 1.0 or 2.0.
//
// It stands behind the walk over the snapshots, like the history. Every
// request is first a file below the state directory and is removed when the
// engine has taken it: an outage, or a restart, costs nothing until the buffer
// is full, and then the oldest. Only ttmond links this package.
package remotewrite
