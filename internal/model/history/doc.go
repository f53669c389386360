// Package history keeps samples over time for the charts.
//
// It stands beside the snapshots: the screens that receive them (ttmon top, mem
// and replay) put the figures worth drawing into a Store, and charts ask a
// Reader for as many points as they have dots. A Store lives in memory and
// forgets: the last half hour sample by sample, hours and days as minima and
// maxima, so that a peak is never lost by zooming out.
package history
