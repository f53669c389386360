// Package export hands recordings to the viewers that people already use:
// Perfetto, pprof, spreadsheets, Prometheus.
//
// Its place in the flow: it reads internal/past/recording and, beside it, the traces
// of tt-metal that internal/cli/metaltrace laid on the same clock; cmd/ttmon writes
// what it makes to a file.
//
// A recording is read once and told to a Sink (points of series, slices,
// instants), which writes one format or another. None of the formats
// knows a figure that is missing or doubtful: where one is missing there is no
// point, and where one is not exact a second series tells how it is to be read
// (0 exact, 1 at least, 2 unsure).
package export
