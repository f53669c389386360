// Package metaltrace reads the traces that tt-metal and its tools write: the
// device profiler's log (profile_log_device.csv), the op report made of it
// (ops_perf_results_*.csv), Tracy's zones as CSV (tracy_ops_times.csv), and
// ttnn's graph report (db.sqlite).
//
// Its place in the flow: cmd/ttmon hands it the files that a user names, and
// internal/cli/export lays what it reads beside a recording.
//
// # Clocks
//
// None of these files has the time of day. The device profiler counts cycles of
// each chip since its reset, Tracy nanoseconds since it began, the graph report
// has only how long each op took. So a Trace has clocks: times of one clock are
// right relative to each other, and where a clock stands in time is for the
// reader to say, or is taken from when the file was written, which is after its
// last event: order and durations are exact then, and the place in time is late
// by what passed between that event and the writing, a second or so.
//
// # Versions
//
// Columns are found by their names. A file without those that are needed, or
// with a line that cannot be read, is refused, with the line.
package metaltrace
