package metric

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Query is the PromQL for a field of devices over time, and by how much its
// answer is to be divided to be in the JSON contract's unit. ok is false for
// what has no series. A rate is made from the counter behind it.
func (f *Field[S]) Query(window string, selector ...string) (expr string, per float64, ok bool) {
	name, labels, factor := f.Prom.Name, f.Prom.Labels, f.Prom.Factor
	rate := false
	switch f.Name {
	case "pcie.rx":
		name, labels, rate = "tenstorrent_pcie_transferred_bytes_total", `direction="to_device"`, true
	case "pcie.tx":
		name, labels, rate = "tenstorrent_pcie_transferred_bytes_total", `direction="from_device"`, true
	case "heartbeat.rate":
		name, rate = "tenstorrent_heartbeat_total", true
	}
	if name == "" {
		return "", 0, false
	}
	if factor == 0 {
		factor = 1
	}
	all := selector
	if labels != "" {
		all = append([]string{labels}, selector...)
	}
	expr = name
	if len(all) > 0 {
		expr += "{" + strings.Join(all, ",") + "}"
	}
	if rate {
		// Of a window that is known in part only, rate() makes too little: traffic
		// would seem to begin and to fade where the counter was merely not read.
		expr = "(rate(" + expr + "[" + window + "]) and " + expr + " and " + expr + " offset " + window + ")"
	}
	return expr, factor, true
}

// Over is a time that a history is asked about: how long ago it begins, how far apart
// points are wanted, and how far apart samples are (0: every second).
type Over struct{ Age, Step, Apart time.Duration }

// window is over what time a rate is made: a few samples, which in the last hour are as
// far apart as they are taken, and 15 seconds before.
func (o Over) window() string {
	least := time.Minute
	if o.Age < time.Hour+time.Minute {
		least = 10 * time.Second
	}
	return strconv.Itoa(int(max(least, o.Step, 4*o.Apart).Seconds())) + "s"
}

// Question is what a history is asked for a field over time, in PromQL.
type Question struct {
	Expr   string
	Bound  string  // how its figures are to be read, as of QueryBound; empty: they are never doubtful
	Factor float64 // the answer divided by it is the figure as snapshots have it
	Divide float64 // the answer divided by it is the figure in the field's unit
}

// Question is the question about a field; ok is false for what has no series.
func (f *Field[S]) Question(o Over, selector ...string) (q Question, ok bool) {
	if q.Expr, q.Factor, ok = f.Query(o.window(), selector...); !ok {
		return q, false
	}
	q.Bound, _ = f.QueryBound(selector...)
	q.Divide = q.Factor
	if f.Per != 0 {
		q.Divide *= f.Per
	}
	return q, true
}

// QueryBound is the PromQL for how the field's figures are to be read: 0 exact,
// 1 at least, 2 unsure; ok is false for what is never doubtful.
func (f *Field[S]) QueryBound(selector ...string) (expr string, ok bool) {
	if f.Prom.Bound == "" {
		return "", false
	}
	all := selector
	if f.Prom.Labels != "" {
		all = append([]string{f.Prom.Labels}, selector...)
	}
	if len(all) == 0 {
		return f.Prom.Bound, true
	}
	return f.Prom.Bound + "{" + strings.Join(all, ",") + "}", true
}

// Matcher is a PromQL matcher for one of several values of a label.
func Matcher(label string, values ...string) string {
	exact := make([]string, len(values))
	for i, v := range values {
		exact[i] = regexp.QuoteMeta(v)
	}
	return label + "=~" + strconv.Quote(strings.Join(exact, "|"))
}
