package api

import (
	"time"

	"github.com/ttmon/ttmon/internal/history/changed"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/runs/compare"
)

// Answers about the past that are put together in place.
type (
	rangeAnswer struct {
		Schema string        `json:"schema"`
		Start  time.Time     `json:"start"`
		End    time.Time     `json:"end"`
		Step   float64       `json:"step_s"`
		Times  []float64     `json:"times"`
		Away   []bool        `json:"away,omitempty"` // nothing was sampled then
		Series []rangeSeries `json:"series"`
	}
	eventsAnswer struct {
		Schema string        `json:"schema"`
		Events []model.Event `json:"events"`
		Last   uint64        `json:"last"`
	}
	spanAnswer struct {
		Schema string     `json:"schema"`
		Oldest *time.Time `json:"oldest"`
		Newest *time.Time `json:"newest"`
	}
	alertsAnswer struct {
		Schema string           `json:"schema"`
		Alerts []map[string]any `json:"alerts"`
	}
)

// list are the calls about what is remembered.
func (s pastCalls) list() []call {
	return []call{
		{method: "GET", path: "/v1/range", serve: offered(s.Range != nil, s.rangeOf), help: "metrics of devices over time, on common times", answer: rangeAnswer{}, params: []param{
			{name: "metric", help: "names of /v1/metrics, by commas; at most 8", required: true},
			{name: "device", help: "bus id; all devices where it is left out"},
			startParam, endParam,
			{name: "step", help: "15s; as many as a chart has where it is left out"},
			{name: "of", help: "end: the value at the end of each step; most: its most"},
		}},
		{method: "GET", path: "/v1/changed", serve: offered(s.Changed != nil, s.changed), help: "the series of the host that changed in a stretch of time, by how far they moved in their usual variation", answer: changed.Answer{}, params: []param{startParam, endParam}},
		{method: "GET", path: "/v1/events", follows: true, serve: offered(s.Events != nil, s.events), help: "what happened", answer: eventsAnswer{}, params: []param{
			{name: "after", help: "only events with a higher number"},
			{name: "since", help: "RFC 3339"},
			{name: "until", help: "RFC 3339"},
			{name: "device", help: "bus id"},
			{name: "kind", help: "may be given several times"},
			{name: "limit", help: "the newest so many"},
			{name: "follow", help: "1: go on, as server-sent events"},
		}},
		{method: "GET", path: "/v1/alerts", serve: offered(s.Alerts != nil, s.alerts), help: "alerts that are pending or fire", answer: alertsAnswer{}},
		{method: "GET", path: "/v1/past", serve: offered(s.Past != nil, s.past), help: "the snapshot of another time", params: []param{atParam}, answer: schemaOnly{}},
		{method: "GET", path: "/v1/past/span", serve: offered(s.Span != nil, s.span), help: "how far back /v1/past reaches", answer: spanAnswer{}},
		{method: "GET", path: "/v1/processes/{pid}/history", serve: offered(s.Past != nil, s.processPast), help: "what a process held over time: every change from every_change_since on, or the most of each step where step_s is above 0; before that what the snapshots have that are kept", answer: pastAnswer{}, params: []param{
			pidParam, startParam, endParam, {name: "points", help: "at most about so many, 2 to 1000"}, {name: "start_ticks", help: "of the process that is meant"},
		}},
		{method: "GET", path: "/v1/runs", serve: offered(s.Runs != nil, s.runsOf), help: "the programs that used devices: who, when, how they ended, what they took", answer: runs.Answer{}, params: []param{
			{name: "id", help: "of a run (r318), a process or a job; may be given again"},
			{name: "jobs", help: "true: all runs of each Slurm job or pod that has such a run; id is then that of a job, or its name"},
			{name: "uid", help: "of their user"},
			{name: "since", help: "those that ran at this time or later"},
			{name: "until", help: "those that began before this time"},
			{name: "device", help: "that they used: index or bus id"},
			{name: "job", help: "that they belong to"},
			{name: "command", help: "exactly this command line"},
			{name: "text", help: "in the command, the user or the job"},
			{name: "leaked", help: "true: only those that left memory behind"},
			{name: "failed", help: "true: only those that are known to have ended badly"},
			{name: "running", help: "true or false: only those that have not, or have, ended"},
			{name: "limit", help: "the newest so many"},
		}},
		{method: "GET", path: "/v1/runs/compare", serve: offered(s.Runs != nil, s.compareRuns), help: "how a run differs from another, or from the median of the last five of the same command", answer: compare.Comparison{}, params: []param{
			{name: "run", help: "the run", required: true},
			{name: "with", help: "the run that it is compared with; without: the usual"},
		}},
	}
}
