// Package promapi answers the Prometheus HTTP API over a node's history:
// PromQL, labels, series, metadata, rules and alerts, so that Grafana,
// promtool and every other client of Prometheus can be pointed at a ttmon-server.
//
// It stands between the history (storage.Queryable) and HTTP. Every question
// is bounded: in time, in samples, in points, and in how many are answered at
// once. Only ttmon-server links this package.
package promapi
