package config

import (
	"fmt"
	"time"
)

// Config is everything that can be set. Start from Default: the zero Config
// is not useful.
type Config struct {
	Display Display `toml:"display"`
	Top     Top     `toml:"top"`
}

// Display is what all screens share.
type Display struct {
	Theme   string `toml:"theme"`   // auto, or a theme by its name or path
	Corners string `toml:"corners"` // square, round
	Mouse   bool   `toml:"mouse"`
}

// Top is ttmon top.
type Top struct {
	Interval  Duration  `toml:"interval"`
	ReadOnly  bool      `toml:"readonly"`
	Host      bool      `toml:"host"`
	Runs      bool      `toml:"runs"` // keep them where no ttmon-server does
	Devices   Devices   `toml:"devices"`
	Charts    Charts    `toml:"charts"`
	Processes Processes `toml:"processes"`
}

// Devices is the device area of ttmon top.
type Devices struct {
	Layout string   `toml:"layout"` // auto, blocks, compact, lines, grid
	Order  string   `toml:"order"`  // index, worst
	Group  string   `toml:"group"`  // tray, board, none
	Only   []string `toml:"only"`   // index, bus id, serial or ASIC id; empty: all
	Chart  string   `toml:"chart"`  // what is drawn beside the bars of a device: a metric, or none
}

// Charts is the chart area of ttmon top.
type Charts struct {
	Show    string   `toml:"show"` // auto, always, never
	Metrics []string `toml:"metrics"`
	By      string   `toml:"by"` // metric (devices overlaid), device (a chart each)
	Span    Duration `toml:"span"`
	Scale   string   `toml:"scale"`   // limit, fit
	Reverse bool     `toml:"reverse"` // newest at the left
}

// Processes is the process table of ttmon top.
type Processes struct {
	Show       bool     `toml:"show"`
	Columns    []string `toml:"columns"` // empty: as many of the usual ones as fit
	Sort       string   `toml:"sort"`
	Descending bool     `toml:"descending"`
	Tree       bool     `toml:"tree"`
	Filter     string   `toml:"filter"`
}

// Default is the configuration without a file.
func Default() Config {
	return Config{
		Display: Display{Theme: "auto", Corners: "square", Mouse: true},
		Top: Top{
			Interval:  Duration(time.Second),
			Host:      true,
			Runs:      true,
			Devices:   Devices{Layout: "auto", Order: "index", Group: "tray", Chart: "power"},
			Charts:    Charts{Show: "auto", Metrics: []string{"dram", "power"}, By: "metric", Span: Duration(10 * time.Minute), Scale: "limit"},
			Processes: Processes{Show: true, Sort: "dram", Descending: true},
		},
	}
}

// Clone is a copy that shares no slices with c.
func (c Config) Clone() Config {
	for _, o := range Options() {
		if list, ok := o.field(&c).(*[]string); ok && *list != nil {
			*list = append([]string{}, *list...)
		}
	}
	return c
}

// Duration is a length of time, written "500ms", "1s", "10m", "6h".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500ms, 1s or 10m", b)
	}
	*d = Duration(v)
	return nil
}

// String is the shortest way to write d: "10m", not "10m0s".
func (d Duration) String() string {
	v := time.Duration(d)
	switch {
	case v == 0:
		return "0s"
	case v%time.Hour == 0:
		return fmt.Sprintf("%dh", v/time.Hour)
	case v%time.Minute == 0:
		return fmt.Sprintf("%dm", v/time.Minute)
	}
	return v.String()
}
