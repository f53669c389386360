// Package recorder turns what is seen while it happens into a recording: it
// takes in snapshots, what processes tell of their blocks, and output, finds
// out what happened between them, and writes all of it in the order of time.
//
// Its place in the flow: cmd/ttmon feeds it from collect or a ttmond and from
// source/track, ttmond from its own snapshots; it writes to internal/past/recording.
//
// What processes tell is read a moment after it happened, and snapshots come
// late. So everything waits until nothing earlier can come: Flush says up to
// when that is.
package recorder
