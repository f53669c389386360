package compare

import (
	"fmt"
	"strconv"
	"strings"
)

// Condition is what a comparison is checked for: dram.peak>+5%.
type Condition struct {
	Text     string
	Name     string
	Device   *int // nil: of the run as a whole
	Above    bool // else below
	Equal    bool // >= or <=
	Relative bool // it is about the change, not about the value of B
	Percent  bool
	Amount   float64
	Unit     Unit // "": none was given
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
	c.Text = strings.TrimSpace(text)
	at := strings.IndexAny(c.Text, "<>")
	if at <= 0 {
		return c, bad
	}
	name, rest := strings.TrimSpace(c.Text[:at]), c.Text[at+1:]
	c.Above = c.Text[at] == '>'
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

func (c *Condition) holds(f *Figure) bool {
	v, limit := f.B.V, c.Amount
	if c.Relative {
		v = f.B.V - f.A.V
		if c.Percent {
			limit = f.A.V * c.Amount / 100
		}
	}
	switch {
	case c.Equal && v == limit:
		return true
	case c.Above:
		return v > limit
	}
	return v < limit
}
