package past

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/params"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/history/changed"
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
		Apart  *float64   `json:"interval_s"` // between two samples, as they are taken now; null: not known
	}
	alertsAnswer struct {
		Schema string           `json:"schema"`
		Alerts []map[string]any `json:"alerts"`
	}
)

// Calls are those about what is remembered. Without a handler are those that m cannot answer.
func (m Memory) Calls(server *api.Server) []api.Call {
	s := calls{server, m}
	return []api.Call{
		{Method: "GET", Path: "/v1/range", Serve: api.Offered(s.Range != nil, s.rangeOf), Help: "metrics of devices over time, on common times", Answer: rangeAnswer{}, Params: []api.Param{
			{Name: "metric", Help: "names of /v1/metrics, by commas; at most 8", Required: true},
			{Name: "device", Help: "bus id; all devices where it is left out"},
			api.StartParam, api.EndParam,
			{Name: "step", Help: "15s; as many as a chart has where it is left out"},
			{Name: "of", Help: "end: the value at the end of each step; most: its most"},
		}},
		{Method: "GET", Path: "/v1/changed", Serve: api.Offered(s.Changed != nil, s.changed), Help: "the series of the host that changed in a stretch of time, by how far they moved in their usual variation", Answer: changed.Answer{}, Params: []api.Param{api.StartParam, api.EndParam}},
		{Method: "GET", Path: "/v1/events", Follows: true, Serve: api.Offered(s.Events != nil, s.events), Help: "what happened", Answer: eventsAnswer{}, Params: append(params.Of(eventlog.Query{}), api.Param{Name: "follow", Help: "1: go on, as server-sent events"})},
		{Method: "GET", Path: "/v1/alerts", Serve: api.Offered(s.Alerts != nil, s.alerts), Help: "alerts that are pending or fire", Answer: alertsAnswer{}},
		{Method: "GET", Path: "/v1/past", Serve: api.Offered(s.Past != nil, s.past), Help: "the snapshot of another time", Params: []api.Param{api.AtParam}, Answer: api.SchemaOnly{}},
		{Method: "GET", Path: "/v1/past/span", Serve: api.Offered(s.Span != nil, s.span), Help: "how far back /v1/past reaches, and how far apart samples are now", Answer: spanAnswer{}},
		{Method: "GET", Path: "/v1/processes/{pid}/history", Serve: api.Offered(s.Past != nil, s.processPast), Help: "what a process held over time: every change from every_change_since on, or the most of each step where step_s is above 0; before that what the snapshots have that are kept", Answer: pastAnswer{}, Params: []api.Param{
			api.PIDParam, api.StartParam, api.EndParam, {Name: "points", Help: "at most about so many, 2 to 1000"}, {Name: "start_ticks", Help: "of the process that is meant"},
		}},
		{Method: "GET", Path: "/v1/runs", Serve: api.Offered(s.Runs != nil, s.runsOf), Help: "the programs that used devices: who, when, how they ended, what they took", Answer: runs.Answer{}, Params: params.Of(runs.Query{})},
		{Method: "GET", Path: "/v1/runs/compare", Serve: api.Offered(s.Runs != nil, s.compareRuns), Help: "how a run differs from another, or from the median of the last five of the same command", Answer: compare.Comparison{}, Params: []api.Param{
			{Name: "run", Help: "the run", Required: true},
			{Name: "with", Help: "the run that it is compared with; without: the usual"},
		}},
	}
}
