// Package disk keeps the history of a node in Prometheus's time series
// database, below ttmon-server's state directory.
//
// It stands behind the walk over the snapshots (view/prom): ttmon-server puts every
// second's samples in, and PromQL, the charts of ttmon and the alerts ask. Two
// databases hold the same series: the fine one every sample of the last hours,
// the coarse one a sample every 15 seconds for weeks. A question is answered
// from the fine one as far as it reaches back, from the coarse one before.
//
// Nothing about the disk ends the daemon: what is damaged, or from a future
// that a wrong clock made, is set aside and said; while the disk takes nothing,
// history is kept in memory. Only ttmon-server links this package.
package disk
