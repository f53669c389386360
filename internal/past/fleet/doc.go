// Package fleet answers for many hosts at once: the cells of the page's fleet
// view, as a Prometheus-compatible engine has them.
//
// It stands beside internal/node/api: that one answers for this host, from snapshots;
// this one asks an engine in PromQL and keeps nothing but the last answers, a few
// seconds each, for all viewers together.
package fleet
