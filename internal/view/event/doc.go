// Package event finds out what happened between two snapshots: processes that
// came and went, devices that were reset, hung or got too hot.
//
// It stands between the snapshots and what reports them: the log of ttmond, the log
// of ttmon top and its charts, which mark events under their lines. It only
// compares what snapshots say.
package event
