package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is one setting: what the setup screen shows, what a TTMON_* variable
// sets, and what the file may hold.
type Option struct {
	Path    string   // "top.charts.span"
	Title   string   // a few words for the setup screen
	Help    string   // one sentence
	Choices []string // the words allowed; nil: anything of its type
	Open    bool     // other words than Choices are allowed too; the code that uses the option checks them
	Min     time.Duration
	Max     time.Duration // of a length of time; 0: no limit
	field   func(*Config) any
}

// Kind is what an option holds.
type Kind int

// The kinds of options.
const (
	Word   Kind = iota // one of Choices, or free text
	Switch             // true or false
	Length             // a length of time
	List               // several words
)

// Intervals and spans beyond these are typing mistakes.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
	minSpan     = 10 * time.Second
	maxSpan     = 7 * 24 * time.Hour
)

// Options lists all settings in the order of the file.
func Options() []Option {
	return []Option{
		{
			Path: "display.theme", Title: "Theme", Help: "The terminal's colours (dark, light), none (mono), or those of a theme file.",
			Choices: []string{"auto", "dark", "light", "mono", "dusk", "ember", "paper", "contrast"}, Open: true, field: func(c *Config) any { return &c.Display.Theme },
		},
		{
			Path: "display.corners", Title: "Corners", Help: "Corners of frames: square, which every font has, or round.",
			Choices: []string{"square", "round"}, field: func(c *Config) any { return &c.Display.Corners },
		},
		{
			Path: "display.mouse", Title: "Mouse", Help: "Select, sort and scroll with the mouse. Shift usually still marks text.",
			field: func(c *Config) any { return &c.Display.Mouse },
		},

		{
			Path: "top.interval", Title: "Interval", Help: "Time between two updates, of ttmon mem too.",
			Min: minInterval, Max: maxInterval, field: func(c *Config) any { return &c.Top.Interval },
		},
		{
			Path: "top.readonly", Title: "Read only", Help: "Offer no way to signal processes.",
			field: func(c *Config) any { return &c.Top.ReadOnly },
		},
		{
			Path: "top.host", Title: "Host", Help: "Processors, load and memory of the host in the title, where there is room.",
			field: func(c *Config) any { return &c.Top.Host },
		},
		{
			Path: "top.runs", Title: "Keep runs", Help: "Keep what programs took of devices for ttmon runs, where no ttmon-server does.",
			field: func(c *Config) any { return &c.Top.Runs },
		},

		{
			Path: "top.devices.layout", Title: "Layout", Help: "How much room a device gets; auto takes what fits.",
			Choices: []string{"auto", "blocks", "compact", "lines", "grid"}, field: func(c *Config) any { return &c.Top.Devices.Layout },
		},
		{
			Path: "top.devices.order", Title: "Order", Help: "By kernel index, or the device in most trouble first.",
			Choices: []string{"index", "worst"}, field: func(c *Config) any { return &c.Top.Devices.Order },
		},
		{
			Path: "top.devices.group", Title: "Group", Help: "Keep devices of one tray, or of one board, together.",
			Choices: []string{"tray", "board", "none"}, field: func(c *Config) any { return &c.Top.Devices.Group },
		},
		{
			Path: "top.devices.only", Title: "Only", Help: "Show only these devices: index, bus id, serial or ASIC id. Empty: all.",
			field: func(c *Config) any { return &c.Top.Devices.Only },
		},
		{
			Path: "top.devices.chart", Title: "Chart", Help: "What is drawn beside the bars of each device, where they have blocks.",
			Choices: []string{"power", "dram", "l1", "temperature", "activity", "aiclk", "pcie_to", "pcie_from", "none"}, field: func(c *Config) any { return &c.Top.Devices.Chart },
		},

		{
			Path: "top.charts.show", Title: "Show", Help: "Charts where there is room, always, or never.",
			Choices: []string{"auto", "always", "never"}, field: func(c *Config) any { return &c.Top.Charts.Show },
		},
		{
			Path: "top.charts.metrics", Title: "Metrics", Help: "A chart each: power; several in one: pcie_to+pcie_from; of devices: power@0/2.",
			field: func(c *Config) any { return &c.Top.Charts.Metrics },
		},
		{
			Path: "top.charts.by", Title: "By", Help: "A chart per metric with all devices in it, or charts for each device.",
			Choices: []string{"metric", "device"}, field: func(c *Config) any { return &c.Top.Charts.By },
		},
		{
			Path: "top.charts.span", Title: "Span", Help: "How much time a chart shows.",
			Min: minSpan, Max: maxSpan, field: func(c *Config) any { return &c.Top.Charts.Span },
		},
		{
			Path: "top.charts.scale", Title: "Scale", Help: "From zero to the limit, or fitted to what is shown.",
			Choices: []string{"limit", "fit"}, field: func(c *Config) any { return &c.Top.Charts.Scale },
		},
		{
			Path: "top.charts.reverse", Title: "Newest left", Help: "Let time run from right to left.",
			field: func(c *Config) any { return &c.Top.Charts.Reverse },
		},

		{
			Path: "top.processes.show", Title: "Show", Help: "Show the process table.",
			field: func(c *Config) any { return &c.Top.Processes.Show },
		},
		{
			Path: "top.processes.columns", Title: "Columns", Help: "The columns, in this order. Empty: as many of the usual ones as fit.",
			field: func(c *Config) any { return &c.Top.Processes.Columns },
		},
		{
			Path: "top.processes.sort", Title: "Sort by", Help: "The column the table is sorted by.",
			field: func(c *Config) any { return &c.Top.Processes.Sort },
		},
		{
			Path: "top.processes.descending", Title: "Descending", Help: "The largest first.",
			field: func(c *Config) any { return &c.Top.Processes.Descending },
		},
		{
			Path: "top.processes.tree", Title: "Tree", Help: "Children below their parents.",
			field: func(c *Config) any { return &c.Top.Processes.Tree },
		},
		{
			Path: "top.processes.filter", Title: "Filter", Help: "Only processes that match: user=root dram>1G device=3 cmd~llama.",
			field: func(c *Config) any { return &c.Top.Processes.Filter },
		},
	}
}

// OptionAt is the option with a path, or nil.
func OptionAt(path string) *Option {
	all := Options()
	if i := slices.IndexFunc(all, func(o Option) bool { return o.Path == path }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Kind is what the option holds.
func (o *Option) Kind() Kind {
	switch o.field(&Config{}).(type) {
	case *bool:
		return Switch
	case *Duration:
		return Length
	case *[]string:
		return List
	}
	return Word
}

// Get is the option's value as people write it; lists are joined by commas.
func (o *Option) Get(c *Config) string {
	switch f := o.field(c).(type) {
	case *string:
		return *f
	case *bool:
		return strconv.FormatBool(*f)
	case *Duration:
		return f.String()
	case *[]string:
		return strings.Join(*f, ",")
	}
	panic("BUG: config: option of unknown type")
}

// Set changes the option to a value as people write it.
func (o *Option) Set(c *Config, value string) error {
	switch f := o.field(c).(type) {
	case *string:
		*f = value
	case *bool:
		v, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s: %q is neither true nor false", o.Path, value)
		}
		*f = v
	case *Duration:
		if err := f.UnmarshalText([]byte(value)); err != nil {
			return fmt.Errorf("%s: %w", o.Path, err)
		}
	case *[]string:
		*f = nil
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word != "" {
				*f = append(*f, word)
			}
		}
	}
	return o.check(c)
}

// check tells what is wrong with the option's present value.
func (o *Option) check(c *Config) error {
	switch f := o.field(c).(type) {
	case *string:
		if o.Choices != nil && !o.Open && !slices.Contains(o.Choices, *f) {
			return fmt.Errorf("%s: %q is not one of %s", o.Path, *f, strings.Join(o.Choices, ", "))
		}
	case *Duration:
		if d := time.Duration(*f); d < o.Min || o.Max > 0 && d > o.Max {
			return fmt.Errorf(`%s: %s is not between %s and %s (write a length of time as "1s" or "10m")`, o.Path, *f, Duration(o.Min), Duration(o.Max))
		}
	}
	return nil
}

// toml is the option's value as TOML.
func (o *Option) toml(c *Config) string {
	switch f := o.field(c).(type) {
	case *string:
		return quote(*f)
	case *Duration:
		return quote(f.String())
	case *[]string:
		words := make([]string, len(*f))
		for i, w := range *f {
			words[i] = quote(w)
		}
		return "[" + strings.Join(words, ", ") + "]"
	}
	return o.Get(c)
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
