package alert

import (
	"context"
	"net/url"
	"text/template/parse"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	promtemplate "github.com/prometheus/prometheus/template"
)

// Prometheus defines these before a template; so do we.
const preamble = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

// annotate expands the rule's sentences for an alert.
func (m *Manager) annotate(ctx context.Context, r *Rule, a *Alert, now time.Time) map[string]string {
	ask := func(ctx context.Context, q string, at time.Time) (promql.Vector, error) { return m.vector(ctx, q, at) }
	data := promtemplate.AlertTemplateData(a.Labels, nil, "", promql.Sample{F: float64(a.Value)})
	notes := map[string]string{}
	for name, text := range map[string]string{"summary": r.Summary, "description": r.Description} {
		if text == "" {
			continue
		}
		out, err := promtemplate.NewTemplateExpander(ctx, preamble+text, r.Name, data, model.TimeFromUnixNano(now.UnixNano()), ask, new(url.URL), nil).Expand()
		if err != nil {
			out = text // unexpanded: better than nothing
		}
		notes[name] = out
	}
	return notes
}

// checkTemplate finds mistakes of form. Which functions there are is known
// when it is expanded.
func checkTemplate(text string) error {
	t := parse.New("template")
	t.Mode = parse.SkipFuncCheck
	_, err := t.Parse(preamble+text, "", "", map[string]*parse.Tree{})
	return err
}
