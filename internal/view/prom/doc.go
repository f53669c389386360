// Package prom says a snapshot as Prometheus series.
//
// It stands beside the other views: Walk turns a snapshot and what ttmond
// knows of itself into samples, family by family, all driven by the metric
// table. The text page (/metrics), the history, remote write and the alerts
// are fed by the same walk, so a series has one name and one meaning
// everywhere. A value that is not known has no sample, never a zero.
package prom
