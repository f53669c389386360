package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Condition is what a comparison is checked for: dram.peak>+5%.
type Condition struct {
	Source   string  `json:"condition"` // as it was written
	Name     string  `json:"-"`
	Device   *int    `json:"-"` // nil: of the run as a whole
	Above    bool    `json:"-"` // else below
	Equal    bool    `json:"-"` // >= or <=
	Relative bool    `json:"-"` // it is about the change, not about the value of B
	Percent  bool    `json:"-"`
	Amount   float64 `json:"-"`
	Unit     Unit    `json:"-"` // "": none was given
}

// measure is a unit and what amounts in it are multiplied by.
type measure struct {
	unit Unit
	by   float64
}

// units are those that amounts are given in, and what they are multiplied by.
var units = map[string]measure{
	"": {"", 1}, "B": {Bytes, 1}, "K": {Bytes, 1 << 10}, "KiB": {Bytes, 1 << 10}, "M": {Bytes, 1 << 20}, "MiB": {Bytes, 1 << 20},
	"G": {Bytes, 1 << 30}, "GiB": {Bytes, 1 << 30}, "s": {Seconds, 1}, "m": {Seconds, 60}, "min": {Seconds, 60}, "h": {Seconds, 3600},
	"J": {Joules, 1}, "Wh": {Joules, 3600}, "kWh": {Joules, 3.6e6}, "W": {Watts, 1}, "C": {Celsius, 1}, "°C": {Celsius, 1}, "MHz": {MHz, 1},
}

// ParseCondition reads NAME[@DEVICE]>[+|-]AMOUNT[%|UNIT], with >, >=, < or <=. With
// a sign the amount is a change from A to B, without it is what B may be; a
// percentage is a change.
func ParseCondition(text string) (c Condition, err error) {
	bad := fmt.Errorf("%q is not a condition such as dram.peak>+5%%, energy>+10Wh or throttled>0s", text)
	c.Source = strings.TrimSpace(text)
	at := strings.IndexAny(c.Source, "<>")
	if at <= 0 {
		return c, bad
	}
	name, rest := strings.TrimSpace(c.Source[:at]), c.Source[at+1:]
	c.Above = c.Source[at] == '>'
	rest, c.Equal = strings.CutPrefix(rest, "=")
	if before, device, ok := strings.Cut(name, "@"); ok {
		n, err := strconv.Atoi(device)
		if err != nil || n < 0 {
			return c, bad
		}
		name, c.Device = before, &n
	}
	c.Name = name
	rest = strings.TrimSpace(rest)
	end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("+-.0123456789", r) })
	if end < 0 {
		end = len(rest)
	}
	c.Relative = strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-")
	if c.Amount, err = strconv.ParseFloat(rest[:end], 64); err != nil {
		return c, bad
	}
	unit := strings.TrimSpace(rest[end:])
	if unit == "%" {
		c.Percent, c.Relative = true, true
		return c, nil
	}
	u, ok := units[unit]
	if !ok {
		return c, fmt.Errorf("%q: %q is not a unit", text, unit)
	}
	c.Unit, c.Amount = u.unit, c.Amount*u.by
	return c, nil
}

// Result is what came of a condition.
type Result string

// The results, from the best to the worst.
const (
	Passed    Result = "passed"    // it does not hold
	Uncertain Result = "uncertain" // it does not hold of what is known, and may hold of what is true
	Failed    Result = "failed"    // it holds of what is known
)

// Checked is a condition with what came of it.
type Checked struct {
	Condition
	Result Result  `json:"result"`
	Figure *Figure `json:"figure"` // that decided
	Text   string  `json:"text"`   // the figure and the limit, in words
}

// of checks a figure that is known.
func (c *Condition) of(f *Figure) Result {
	known := func(v Value) (least, most float64) { return v.V, v.V }
	switch least, most := c.over(f, known); {
	case c.mayHold(least, most):
		return Failed
	case c.mayHold(c.over(f, Value.span)):
		return Uncertain
	}
	return Passed
}

// span is between what and what the truth is.
func (v Value) span() (least, most float64) {
	switch model.ParseBound(v.Bound) {
	case model.Exact:
		return v.V, v.V
	case model.AtLeast:
		return v.V, math.Inf(1)
	}
	return math.Inf(-1), math.Inf(1)
}

// over is by how much a figure is above the limit, where a value is somewhere in a span.
func (c *Condition) over(f *Figure, span func(Value) (least, most float64)) (least, most float64) {
	least, most = span(*f.B)
	low, high := 0.0, 0.0
	if c.Relative {
		low, high = span(*f.A)
	}
	return c.excess(least, high), c.excess(most, low)
}

// excess is by how much B is above what the limit makes of A.
func (c *Condition) excess(b, a float64) float64 {
	switch {
	case math.IsInf(a, 0):
		return -a
	case c.Percent:
		return b - a - a*c.Amount/100
	}
	return b - a - c.Amount
}

// mayHold reports whether the condition holds of some excess in a span.
func (c *Condition) mayHold(least, most float64) bool {
	if c.Above {
		return most > 0 || c.Equal && most == 0
	}
	return least < 0 || c.Equal && least == 0
}
