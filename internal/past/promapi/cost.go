package promapi

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// Bounds of what a question may cost. They are checked before it is evaluated,
// since the engine reserves memory for each step of a subquery at once, and
// looks at its deadline only between two series.
const (
	maxNodes      = 1000 // of an expression
	maxDepth      = 100
	maxReach      = 50 * year   // of all ranges and offsets together
	maxCells      = 2_000_000   // points of all series of all parts: 32 MB
	maxLabelBytes = 16 << 20    // of all series of all parts
	maxLabelValue = 4 << 10     // bytes of one label
	maxWindowWork = 300_000_000 // points that windows of one series cover, over all steps: about a second
	year          = 365 * 24 * time.Hour
)

// tooCostly is the error of a question that exceeds a bound.
type tooCostly struct {
	what    string
	has     float64
	allowed float64
	hint    string
}

func (e *tooCostly) Error() string {
	return fmt.Sprintf("the query is too expensive: %s: about %.3g, at most %.3g; %s", e.what, e.has, e.allowed, e.hint)
}

func exceeds(what string, has, allowed float64, hint string) error {
	if has > allowed {
		return &tooCostly{what, has, allowed, hint}
	}
	return nil
}

const (
	coarser = "ask for a longer step or a shorter time"
	simpler = "ask for less at once"
)

// times are the moments at which a part of a question is evaluated.
type times struct{ span, step time.Duration }

func (t times) steps() float64 {
	if t.step <= 0 {
		return 1
	}
	return float64(t.span/t.step) + 1
}

// checkShape bounds the size of an expression and how far it reaches in time, so
// that what follows may recurse and add up durations.
func checkShape(e parser.Expr) error {
	nodes, reach := 0, time.Duration(0)
	var walk func(parser.Node, int) error
	walk = func(n parser.Node, depth int) error {
		if nodes++; nodes > maxNodes {
			return exceeds("parts of the expression", float64(nodes), maxNodes, simpler)
		}
		if err := exceeds("nested parts", float64(depth), maxDepth, simpler); err != nil {
			return err
		}
		for _, d := range reaches(n) {
			reach += min(d.Abs(), 2*maxReach)
			if err := exceeds("years that it reaches back", float64(reach/year), float64(maxReach/year), coarser); err != nil {
				return err
			}
		}
		for child := range parser.ChildrenIter(n) {
			if err := walk(child, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(e, 1)
}

// reaches are the durations of a part.
func reaches(n parser.Node) []time.Duration {
	switch n := n.(type) {
	case *parser.VectorSelector:
		return []time.Duration{n.OriginalOffset}
	case *parser.MatrixSelector:
		return []time.Duration{n.Range}
	case *parser.SubqueryExpr:
		return []time.Duration{n.Range, n.OriginalOffset, n.Step}
	}
	return nil
}

// extent is how much a part of a question makes: series, the bytes of their
// labels, the longest label.
type extent struct{ series, labels, value float64 }

var single = extent{series: 1}

// cost adds up what a question costs at most.
type cost struct {
	// selected is what a selector finds in the history.
	selected func(*parser.VectorSelector) (extent, error)

	cells, labels float64
}

// of adds what a part costs that is evaluated at the given times.
func (c *cost) of(e parser.Expr, at times) (extent, error) {
	x, err := c.extent(e, at)
	if err != nil {
		return x, err
	}
	c.cells += max(x.series, 1) * at.steps()
	c.labels += x.series * x.labels
	if err := exceeds("points in memory", c.cells, maxCells, coarser); err != nil {
		return x, err
	}
	if err := exceeds("bytes of a label", x.value, maxLabelValue, "make shorter labels"); err != nil {
		return x, err
	}
	return x, exceeds("bytes of labels", c.labels, maxLabelBytes, "make shorter labels")
}

func (c *cost) extent(e parser.Expr, at times) (extent, error) {
	switch e := unwrapped(e).(type) {
	case *parser.StringLiteral, *parser.NumberLiteral:
		return single, nil
	case *parser.UnaryExpr:
		return c.of(e.Expr, at)
	case *parser.VectorSelector:
		return c.selected(e)
	case *parser.MatrixSelector: // at the top: its points are counted as they are read
		return c.extent(e.VectorSelector, at)
	case *parser.SubqueryExpr:
		return c.of(e.Expr, inside(e, at))
	case *parser.AggregateExpr:
		return c.aggregate(e, at)
	case *parser.BinaryExpr:
		return c.binary(e, at)
	case *parser.Call:
		return c.call(e, at)
	}
	return extent{}, fmt.Errorf("a part of unknown kind: %T", e)
}

// inside is when the expression of a subquery is evaluated.
func inside(e *parser.SubqueryExpr, at times) times {
	step := e.Step
	if step <= 0 {
		step = subqueryStep
	}
	return times{at.span + e.Range, step}
}

func (c *cost) aggregate(e *parser.AggregateExpr, at times) (extent, error) {
	if e.Param != nil {
		if _, err := c.of(e.Param, at); err != nil {
			return extent{}, err
		}
	}
	x, err := c.of(e.Expr, at)
	if e.Op == parser.COUNT_VALUES {
		x.series *= at.steps() // each step may have values of its own
		x.labels += labelBytes
	}
	return x, err
}

// labelBytes is what a label takes besides a long value.
const labelBytes = 64

func (c *cost) binary(e *parser.BinaryExpr, at times) (extent, error) {
	l, err := c.of(e.LHS, at)
	if err != nil {
		return l, err
	}
	r, err := c.of(e.RHS, at)
	if err != nil {
		return r, err
	}
	x := extent{max(l.series, r.series), max(l.labels, r.labels), max(l.value, r.value)}
	switch {
	case e.VectorMatching == nil:
	case e.Op == parser.LOR:
		x.series = l.series + r.series
	case len(e.VectorMatching.Include) > 0: // labels of both; partners may change once a while
		x.series, x.labels = l.series+r.series, l.labels+r.labels
	}
	return x, nil
}

func (c *cost) call(e *parser.Call, at times) (x extent, err error) {
	x = single
	for _, arg := range e.Args {
		var of extent
		switch arg := unwrapped(arg).(type) {
		case *parser.StringLiteral:
			continue
		case *parser.MatrixSelector:
			if of, err = c.of(arg.VectorSelector, times{}); err == nil { // its series are read one by one
				err = checkWindows(e, at, samplesIn(arg.Range))
			}
		case *parser.SubqueryExpr:
			of, err = c.of(arg, at)
			if err == nil {
				err = checkWindows(e, at, float64(arg.Range/inside(arg, at).step)+1)
			}
		default:
			of, err = c.of(arg, at)
		}
		if err != nil {
			return x, err
		}
		if of.series > x.series || of.labels > x.labels {
			x = of
		}
	}
	return relabelled(e, x), nil
}

// unwrapped is an expression without what is only around it.
func unwrapped(e parser.Expr) parser.Expr {
	for {
		switch around := e.(type) {
		case *parser.ParenExpr:
			e = around.Expr
		case *parser.StepInvariantExpr:
			e = around.Expr
		default:
			return e
		}
	}
}

// samplesIn is how many samples of a series there are in a time, at most: one a
// second of the last day, one in 15 seconds before.
func samplesIn(d time.Duration) float64 {
	return min(d, 24*time.Hour).Seconds() + d.Seconds()/15
}

// checkWindows bounds the work of a function over windows of time: the engine
// does not look at its deadline while it does one series.
func checkWindows(e *parser.Call, at times, points float64) error {
	work := points * at.steps()
	if e.Func.Name == "quantile_over_time" {
		work *= 16 // it sorts
	}
	return exceeds("samples in the windows of a series", work, maxWindowWork, coarser)
}

// relabelled is the extent of series after a function that writes labels.
func relabelled(e *parser.Call, x extent) extent {
	text := func(i int) string {
		if i < len(e.Args) {
			if s, ok := unwrapped(e.Args[i]).(*parser.StringLiteral); ok {
				return s.Val
			}
		}
		return ""
	}
	made := 0.0
	switch e.Func.Name {
	case "label_replace":
		made = float64(len(text(2)))
		for _, r := range text(2) {
			if r == '$' { // a group, which may be the whole value
				made += x.value
			}
		}
	case "label_join":
		made = float64(len(e.Args)) * (x.value + float64(len(text(2))))
	default:
		return x
	}
	x.value = max(x.value, made)
	x.labels += made + float64(len(text(1))) + labelBytes
	return x
}
