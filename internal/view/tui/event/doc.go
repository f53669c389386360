// Package event finds out what happened between two snapshots: processes that
// came and went, devices that were reset, hung or got too hot.
//
// It stands between the snapshots and the charts, which mark events under
// their lines, and the log of ttmon top. It only compares what snapshots say.
package event
