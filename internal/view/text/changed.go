package text

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendChanged draws what changed in a stretch of time, the most first. Lists are
// wrapped to width; 0: they are not.
func AppendChanged(dst []byte, a *changed.Answer, width int) []byte {
	clock := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
	dst = fmt.Appendf(dst, "%s to %s, compared with the %s before\n", clock(a.From), clock(a.To), words.Span(a.From.Sub(a.Since)))
	switch {
	case a.Away:
		return append(dst, "The host was not sampled in one of the two times: there is nothing to compare.\n"...)
	case len(a.Changes) == 0:
		dst = fmt.Appendf(dst, "None of %d series changed by more than twice its usual variation.\n", a.Series)
		return appendApart(dst, a, width)
	}
	t := &lines.Table{Indent: 2, Columns: []lines.Column{{Head: "SCORE", Right: true}, {Head: "DEV", Right: true}, {Head: "WHAT", Most: 32}, {Head: "BEFORE"}, {Head: "DURING"}}}
	for i := range a.Changes {
		c := &a.Changes[i]
		device := words.Nothing
		if c.Device != nil {
			device = strconv.Itoa(*c.Device)
		}
		before, during := ChangedFigures(c)
		t.Add(words.Whole(c.Score), device, words.Escape(ChangedTitle(c)), before, during)
	}
	dst = appendTable(append(dst, '\n'), t)
	if a.More > 0 {
		dst = fmt.Appendf(dst, "  … and %d more that changed less\n", a.More)
	}
	dst = appendApart(dst, a, width)
	note := fmt.Sprintf("SCORE: how far the mean moved, in multiples of the series' usual variation; 100 at most. %d series compared", a.Series)
	if a.Partial {
		note += "; there are more, which were not: mark a shorter stretch"
	}
	return appendWrapped(append(dst, '\n'), note+".", width)
}

// appendApart lists the series that are not ranked, by device.
func appendApart(dst []byte, a *changed.Answer, width int) []byte {
	for _, p := range []struct {
		apart *changed.Apart
		verb  string
	}{{&a.Stopped, "became unknown"}, {&a.Began, "became known"}} {
		if p.apart.Count == 0 {
			continue
		}
		line := fmt.Sprintf("%d series %s: %s", p.apart.Count, p.verb, words.Escape(ChangedNames(p.apart.Series)))
		if n := p.apart.Count - len(p.apart.Series); n > 0 {
			line += fmt.Sprintf(" and %d more", n)
		}
		dst = appendWrapped(append(dst, '\n'), line, width)
	}
	return dst
}

// appendWrapped appends a paragraph in lines of at most width cells, those behind the
// first indented; 0: in one line.
func appendWrapped(dst []byte, paragraph string, width int) []byte {
	p := lines.Printer{Buf: dst}
	p.Lines(lines.Hang(nil, paragraph, cells.Text, width, 2)...)
	return p.Buf
}

// ChangedNames lists series by device: "device 3: AI Clock, Core Power; host: x".
func ChangedNames(list []changed.Change) string {
	var order []string
	of := map[string][]string{}
	for i := range list {
		where := "host"
		if list[i].Device != nil {
			where = "device " + strconv.Itoa(*list[i].Device)
		}
		if of[where] == nil {
			order = append(order, where)
		}
		of[where] = append(of[where], ChangedTitle(&list[i]))
	}
	parts := make([]string, len(order))
	for i, where := range order {
		parts[i] = where + ": " + strings.Join(of[where], ", ")
	}
	return strings.Join(parts, "; ")
}

// ChangedTitle names a series that changed.
func ChangedTitle(c *changed.Change) string {
	title := c.Title
	keys := make([]string, 0, len(c.Labels))
	for k := range c.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		title += " " + k + "=" + c.Labels[k]
	}
	return title
}

// ChangedFigures are the means of a series before and in the stretch, in words.
func ChangedFigures(c *changed.Change) (before, during string) {
	figure := func(p *changed.Part) string {
		if p.Samples == 0 {
			return words.Nothing
		}
		return changedFigure(c, p.Mean)
	}
	before, during = figure(&c.Before), figure(&c.During)
	if c.Kind == changed.Moved && c.Before.Mean != 0 && !strings.HasPrefix(c.Unit, "%") {
		if share := (c.During.Mean/c.Before.Mean - 1) * 100; share < 1000 && share > -1000 {
			during += fmt.Sprintf("  (%+.0f %%)", share)
		}
	}
	return before, during
}

// changedFigure writes a mean. That of a count keeps its fraction: 0 processes
// before and 0.3 during would both be 0.
func changedFigure(c *changed.Change, v float64) string {
	if col, ok := metric.Find(metric.Devices(), c.Metric); ok && !strings.HasSuffix(c.Unit, "/s") && (col.Form() != metric.Plain || v == math.Trunc(v)) {
		per := col.Per
		if per == 0 {
			per = 1
		}
		return col.Form().Format(v * per)
	}
	if c.Unit == "B/s" {
		return words.Rate(v)
	}
	text := strconv.FormatFloat(v, 'f', 2, 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	return strings.TrimSpace(text + " " + c.Unit)
}
