package promapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/view/prom"
)

// querier opens the history for the time that a request is about.
func (h *handler) querier(r *http.Request) (q storage.Querier, sets [][]*labels.Matcher, limit int, err error) {
	start, err := timeParam(r, "start", time.UnixMilli(0))
	if err != nil {
		return nil, nil, 0, err
	}
	end, err := timeParam(r, "end", time.UnixMilli(math.MaxInt64/2))
	if err != nil {
		return nil, nil, 0, err
	}
	limit = maxSeries
	if text := r.Form.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, nil, 0, bad("limit", fmt.Errorf("%q is not a number", text))
		}
		if n > 0 {
			limit = min(limit, n)
		}
	}
	parse := Parser()
	if n := len(r.Form["match[]"]); n > maxSelectors {
		return nil, nil, 0, bad("match[]", fmt.Errorf("there are %d; at most %d are accepted", n, maxSelectors))
	}
	for _, m := range r.Form["match[]"] {
		if err := checkText(m); err != nil {
			return nil, nil, 0, bad("match[]", err)
		}
		set, err := parse.ParseMetricSelector(m)
		if err != nil {
			return nil, nil, 0, bad("match[]", err)
		}
		sets = append(sets, set)
	}
	q, err = h.opt.Queryable.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return nil, nil, 0, err
	}
	return q, sets, limit, nil
}

// union asks once for each set of matchers and joins the answers.
func union(sets [][]*labels.Matcher, ask func(...*labels.Matcher) ([]string, error)) (any, error) {
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	list := []string{}
	for _, set := range sets {
		some, err := ask(set...)
		if err != nil {
			return nil, listError(err)
		}
		for _, s := range some {
			list = append(list, string([]byte(s))) // the querier's memory goes with it
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// listError is the error of a list that could not be made.
func listError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &apiError{http.StatusServiceUnavailable, "timeout", err}
	}
	return &apiError{http.StatusUnprocessableEntity, "execution", err}
}

func (h *handler) labelNames(r *http.Request) (any, error) {
	q, sets, limit, err := h.querier(r)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return union(sets, func(m ...*labels.Matcher) ([]string, error) {
		list, _, err := q.LabelNames(r.Context(), &storage.LabelHints{Limit: limit}, m...)
		return list, err
	})
}

func (h *handler) labelValues(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if !model.UTF8Validation.IsValidLabelName(name) {
		return nil, bad("name", fmt.Errorf("%q is not a label name", name))
	}
	q, sets, limit, err := h.querier(r)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return union(sets, func(m ...*labels.Matcher) ([]string, error) {
		list, _, err := q.LabelValues(r.Context(), name, &storage.LabelHints{Limit: limit}, m...)
		return list, err
	})
}

func (h *handler) series(r *http.Request) (any, error) {
	if len(r.Form["match[]"]) == 0 {
		return nil, bad("match[]", errors.New("at least one is needed"))
	}
	q, sets, limit, err := h.querier(r)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	list := []labels.Labels{}
	seen := map[uint64]bool{}
	for _, set := range sets {
		found := q.Select(r.Context(), true, nil, set...)
		for found.Next() && len(list) < limit {
			l := found.At().Labels()
			if hash := l.Hash(); !seen[hash] {
				seen[hash] = true
				list = append(list, l.Copy())
			}
		}
		if err := cmp.Or(found.Err(), r.Context().Err()); err != nil {
			return nil, listError(err)
		}
	}
	return list, nil
}

// metadata is about our own metrics, from the table.
func (h *handler) metadata(r *http.Request) (any, error) {
	type entry struct {
		Type string `json:"type"`
		Help string `json:"help"`
		Unit string `json:"unit"`
	}
	all := map[string][]entry{}
	for _, f := range prom.Families() {
		if only := r.Form.Get("metric"); only == "" || only == f.Name {
			all[f.Name] = []entry{{f.Type, f.Help, f.Unit()}}
		}
	}
	return all, nil
}

func (h *handler) rules(*http.Request) (any, error) {
	if h.opt.Rules == nil {
		return map[string]any{"groups": []any{}}, nil
	}
	return h.opt.Rules(), nil
}

func (h *handler) alerts(*http.Request) (any, error) {
	if h.opt.Alerts == nil {
		return map[string]any{"alerts": []any{}}, nil
	}
	return h.opt.Alerts(), nil
}

// buildInfo is what Grafana asks to learn what it may ask: as much as a
// Prometheus of the version whose library this is.
func (h *handler) buildInfo(*http.Request) (any, error) {
	return map[string]string{
		"version": "3.15.0", "revision": h.opt.Version, "branch": "ttmond", "buildUser": "", "buildDate": "", "goVersion": "",
	}, nil
}
