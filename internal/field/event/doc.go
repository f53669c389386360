// Package event finds out what happened between two snapshots: processes that
// came and went, devices that were reset, hung or got too hot.
//
// Its events feed ttmond's event log, and the log and the charts of ttmon top. It
// reads nothing but the two snapshots.
package event
