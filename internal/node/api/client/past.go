package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/params"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/history/changed"
)

// Events asks for what happened, oldest first.
func (c *Client) Events(ctx context.Context, q eventlog.Query) ([]model.Event, error) {
	var answer struct{ Events []model.Event }
	err := c.read(ctx, "/v1/events?"+params.Values(&q).Encode(), "events", &answer)
	return answer.Events, err
}

// Runs asks for the programs that used devices.
func (c *Client) Runs(ctx context.Context, q runs.Query) (*runs.Answer, error) {
	answer := new(runs.Answer)
	return answer, c.read(ctx, "/v1/runs?"+params.Values(&q).Encode(), "runs", answer)
}

// Past asks for the snapshot that held at a time.
func (c *Client) Past(ctx context.Context, at time.Time) (*model.Snapshot, error) {
	body, err := c.get(ctx, "/v1/past?at="+url.QueryEscape(at.UTC().Format(time.RFC3339Nano)))
	if err != nil {
		return nil, err
	}
	s, err := wire.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("reading a past snapshot of the ttmond at %s: %w", c.path, err)
	}
	s.Source = model.Daemon
	return s, nil
}

// Apart asks how far apart the samples of a history are, as they are taken now; 0: the
// server does not know.
func (c *Client) Apart(ctx context.Context) (time.Duration, error) {
	var answer struct {
		Apart float64 `json:"interval_s"`
	}
	err := c.read(ctx, "/v1/past/span", "how far apart samples are", &answer)
	return time.Duration(answer.Apart * float64(time.Second)), err
}

// Alerts asks which alerts fire.
func (c *Client) Alerts(ctx context.Context) ([]model.Alert, error) {
	var answer struct {
		Alerts []struct {
			Labels, Annotations map[string]string
			State               string
			ActiveAt            time.Time
			Silenced            bool
		}
	}
	if err := c.read(ctx, "/v1/alerts", "alerts", &answer); err != nil {
		return nil, err
	}
	var list []model.Alert
	for _, a := range answer.Alerts {
		if a.State == "firing" {
			list = append(list, model.Alert{
				Name: a.Labels["alertname"], Severity: a.Labels["severity"], Summary: a.Annotations["summary"], BusID: a.Labels["pci"],
				Since: a.ActiveAt, Silenced: a.Silenced, Condition: model.ConditionKind(a.Labels["condition"]),
			})
		}
	}
	return list, nil
}

// Series is a line of numbers with its labels.
type Series struct {
	Labels map[string]string `json:"metric"`
	Points []Point           `json:"values"`
}

// Point is a number at a time.
type Point struct {
	Time  time.Time
	Value float64
	Bound model.Bound // how it is to be read; see BoundRange
}

// bind gives points the bounds that their companion series have at the same
// times. A figure without a companion is not known to be exact.
func bind(list, companions []Series) {
	type at struct {
		series string
		ms     int64
	}
	bounds := map[at]model.Bound{}
	for i := range companions {
		name := companions[i].identity()
		for _, p := range companions[i].Points {
			bounds[at{name, p.Time.UnixMilli()}] = BoundOf(p.Value)
		}
	}
	for i := range list {
		name := list[i].identity()
		for j := range list[i].Points {
			p := &list[i].Points[j]
			bound, ok := bounds[at{name, p.Time.UnixMilli()}]
			if !ok {
				bound = model.Unsure
			}
			p.Bound = bound
		}
	}
}

// BoundOf reads a companion's value.
func BoundOf(v float64) model.Bound {
	switch v {
	case 0:
		return model.Exact
	case 1:
		return model.AtLeast
	}
	return model.Unsure
}

// identity is a series' labels without its name.
func (s *Series) identity() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		if k != "__name__" {
			b.WriteString(k + "\x00" + s.Labels[k] + "\x00")
		}
	}
	return b.String()
}

// UnmarshalJSON reads Prometheus's [seconds, "value"].
func (p *Point) UnmarshalJSON(b []byte) error {
	var pair [2]any
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	at, ok1 := pair[0].(float64)
	text, ok2 := pair[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if !ok1 || !ok2 || err != nil || math.Abs(at) > 1e12 {
		return fmt.Errorf("%s is not a point", b)
	}
	p.Time, p.Value = time.UnixMilli(int64(math.Round(at*1000))), v
	return nil
}

// Range asks a PromQL question over a time.
func (c *Client) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error) {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	v := url.Values{
		"query": {expr}, "start": {seconds(start)}, "end": {seconds(end)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)},
	}
	body, err := c.get(ctx, "/prometheus/api/v1/query_range?"+v.Encode())
	if err != nil {
		return nil, err
	}
	return parseSeries(body)
}

// BoundRange is Range with the bounds of the figures, which are another question's:
// figures without their doubts are worse than none. Without a question for them they
// are never doubtful.
func (c *Client) BoundRange(ctx context.Context, expr, bound string, start, end time.Time, step time.Duration) ([]Series, error) {
	list, err := c.Range(ctx, expr, start, end, step)
	if err != nil || bound == "" {
		return list, err
	}
	bounds, err := c.Range(ctx, bound, start, end, step)
	bind(list, bounds)
	return list, err
}

// Changed asks which series of the host changed in a stretch of time.
func (c *Client) Changed(ctx context.Context, from, to time.Time) (*changed.Answer, error) {
	v := url.Values{"start": {from.UTC().Format(time.RFC3339Nano)}, "end": {to.UTC().Format(time.RFC3339Nano)}}
	a := new(changed.Answer)
	return a, c.read(ctx, "/v1/changed?"+v.Encode(), "what changed", a)
}

// parseSeries reads an answer of Prometheus.
func parseSeries(body []byte) ([]Series, error) {
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     []struct {
				Series
				Value *Point `json:"value"`
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer of Prometheus: %w", err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("Prometheus answers: %s", answer.Error)
	}
	list := make([]Series, len(answer.Data.Result))
	for i, r := range answer.Data.Result {
		list[i] = r.Series
		if r.Value != nil {
			list[i].Points = []Point{*r.Value}
		}
	}
	return list, nil
}
