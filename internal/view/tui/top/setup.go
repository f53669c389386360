package top

import (
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// setup is the setup screen: the settings of the configuration file, by
// section. Changes take effect at once and are written by F12.
type setup struct {
	section int
	list    widget.List
	edit    *widget.Line // a text or list being typed
	err     string
}

// sections are the tables of the file, in words.
var sections = []struct{ title, table string }{
	{"Display", "display"}, {"General", "top"}, {"Devices", "top.devices"}, {"Charts", "top.charts"}, {"Processes", "top.processes"},
}

func (s *State) openSetup() []tui.Effect {
	s.dialog = &setup{}
	return nil
}

// options are the settings of the section shown.
func (u *setup) options() []config.Option {
	var out []config.Option
	for _, o := range config.Options() {
		if i := strings.LastIndexByte(o.Path, '.'); o.Path[:i] == sections[u.section].table {
			out = append(out, o)
		}
	}
	return out
}

func (u *setup) key(s *State, k tui.Key) []tui.Effect {
	if u.edit != nil {
		return u.typing(s, k)
	}
	u.err = ""
	list := u.options()
	u.list.N = len(list)
	switch k {
	case "esc", "q", "f2", "S", "f10":
		s.dialog = nil
	case "tab":
		u.turn(1)
	case "shift-tab":
		u.turn(-1)
	case "f12", "w":
		return s.save()
	case "enter", " ", "right", "l", "+":
		return u.change(s, &list[u.list.Sel], 1, k)
	case "left", "h", "-":
		return u.change(s, &list[u.list.Sel], -1, k)
	default:
		if m, ok := widget.MotionOf(k); ok {
			u.list.Move(m)
		}
	}
	return nil
}

func (u *setup) turn(by int) {
	u.section = (u.section + by + len(sections)) % len(sections)
	u.list = widget.List{}
}

// change turns a setting to its next value, or opens what edits it.
func (u *setup) change(s *State, o *config.Option, by int, k tui.Key) []tui.Effect {
	switch {
	case o.Path == "top.charts.metrics":
		return u.choose(s, o, s.metricNames())
	case o.Path == "top.processes.columns":
		return u.choose(s, o, columnNames())
	case o.Path == "top.processes.sort":
		names := columnNames()
		i := slices.Index(names, s.sortField().Name)
		return u.set(s, o, names[(i+by+len(names))%len(names)])
	case o.Kind() == config.Switch:
		return u.set(s, o, map[string]string{"true": "false", "false": "true"}[o.Get(&s.cfg)])
	case o.Choices != nil:
		i := slices.Index(o.Choices, o.Get(&s.cfg))
		return u.set(s, o, o.Choices[(i+by+len(o.Choices))%len(o.Choices)])
	case o.Kind() == config.Length && k != "enter":
		return u.set(s, o, config.Duration(nextLength(o, &s.cfg, by)).String())
	default:
		text := o.Get(&s.cfg)
		u.edit = widget.NewLine(text)
	}
	return nil
}

// nextLength is the next sensible length of time.
func nextLength(o *config.Option, c *config.Config, by int) time.Duration {
	now, err := time.ParseDuration(o.Get(c))
	if err != nil {
		return o.Min
	}
	if strings.HasSuffix(o.Path, ".span") {
		return chart.Zoom(now, -by)
	}
	return nextInterval(now, by)
}

// nextInterval is the next longer or shorter time between updates.
func nextInterval(now time.Duration, by int) time.Duration {
	steps := []time.Duration{100e6, 200e6, 500e6, 1e9, 2e9, 5e9, 10e9, 30e9, 60e9}
	i, found := slices.BinarySearch(steps, now)
	if by > 0 && found {
		i++
	} else if by < 0 {
		i--
	}
	return steps[min(max(i, 0), len(steps)-1)]
}

// choose opens a menu of words to switch on and off.
func (u *setup) choose(s *State, o *config.Option, names []string) []tui.Effect {
	m := &menu{title: o.Title, hint: "Space switches on or off, in the order chosen; Esc when done", many: true}
	columns := o.Path == "top.processes.columns"
	if columns {
		m.hint = "Space switches on or off; none: the usual ones; Esc when done"
	}
	chosen := func() []string {
		v := o.Get(&s.cfg)
		switch {
		case v != "":
			return strings.Split(v, ",")
		case columns: // what is shown is what is ticked
			return s.usualColumns()
		}
		return nil
	}
	fill := func() {
		on := chosen()
		m.items = m.items[:0]
		for _, n := range names {
			m.items = append(m.items, menuItem{text: n, help: s.helpFor(n), on: slices.Contains(on, n)})
		}
	}
	fill()
	m.pick = func(s *State, i int) []tui.Effect {
		on := toggle(chosen(), names[i])
		if columns {
			on = inPlace(on, names)
		}
		e := u.set(s, o, strings.Join(on, ","))
		fill()
		return e
	}
	s.dialog = &over{menu: m, under: u}
	return nil
}

// usualColumns are the columns that are shown while none are chosen.
func (s *State) usualColumns() []string {
	var out []string
	for _, c := range s.proc.fitted(s.w) {
		out = append(out, c.Name)
	}
	return out
}

// inPlace moves the word added last to where it stands among all: before the
// first that follows it there, and so in front of the command, which takes the
// rest of the line.
func inPlace(list, all []string) []string {
	last := len(list) - 1
	if last < 0 {
		return list
	}
	word := list[last]
	rank := slices.Index(all, word)
	for i, w := range list[:last] {
		if slices.Index(all, w) > rank {
			return slices.Insert(slices.Clone(list[:last]), i, word)
		}
	}
	return list
}

// over is a menu on top of the setup screen, which it goes back to.
type over struct {
	*menu
	under dialog
}

func (o *over) key(s *State, k tui.Key) []tui.Effect {
	if k == "esc" || k == "q" || k == "f10" {
		s.dialog = o.under
		return nil
	}
	return o.menu.key(s, k)
}

func (o *over) draw(s *State, screen cells.Area) {
	o.under.draw(s, screen)
	s.hits.Reset()
	o.menu.draw(s, screen)
}

func (s *State) metricNames() []string {
	var out []string
	for _, g := range s.gauges.All() {
		out = append(out, g.Name)
	}
	return out
}

func columnNames() []string {
	var out []string
	for _, f := range metric.Processes() {
		out = append(out, f.Name)
	}
	return out
}

func (s *State) helpFor(name string) string {
	if f := metric.ProcessNamed(name); f != nil {
		return f.Help
	}
	if g := s.gauges.Find(name); g != nil {
		return g.Help
	}
	return ""
}

// typing edits a text setting.
func (u *setup) typing(s *State, k tui.Key) []tui.Effect {
	switch k {
	case "esc":
		u.edit, u.err = nil, ""
	case "enter":
		list := u.options()
		e := u.set(s, &list[u.list.Sel], u.edit.Text)
		if u.err == "" {
			u.edit = nil
		}
		return e
	default:
		u.edit.Key(k)
	}
	return nil
}

func (u *setup) paste(_ *State, text string) {
	if u.edit != nil {
		u.edit.Insert(text)
	}
}

// set changes a setting and lets it take effect; a wrong value changes nothing.
func (u *setup) set(s *State, o *config.Option, value string) []tui.Effect {
	next := s.cfg.Clone()
	err := o.Set(&next, value)
	if err == nil {
		err = s.adopt(next)
	}
	if u.err = ""; err != nil {
		u.err = err.Error()
		return nil
	}
	if o.Path == "top.interval" {
		return []tui.Effect{tui.SetInterval(time.Duration(s.cfg.Top.Interval))}
	}
	return nil
}

// adopt makes a configuration the one in force, or says what is wrong with it.
func (s *State) adopt(c config.Config) error {
	if _, err := New(Options{Config: c}); err != nil {
		return err
	}
	old := s.cfg
	s.cfg = c
	if c.Top.Processes.Filter != old.Top.Processes.Filter {
		if err := s.proc.setFilter(s, c.Top.Processes.Filter); err != nil {
			return err
		}
	}
	s.proc.build(s)
	if !s.visible(s.focus) {
		s.turn(1)
	}
	return nil
}

func (u *setup) draw(s *State, screen cells.Area) {
	box := widget.Center(screen, min(100, screen.W-2), min(20, screen.H-2))
	box.Fill(' ', cells.Dialog)
	in := box.Box("Setup", cells.Strong)
	in, foot := in.Bottom(1)
	in, help := in.Bottom(2)
	tabs, body := in.Top(2)
	u.drawTabs(s, tabs)
	options := u.options()
	u.list.N = len(options)
	selected := cells.Selected
	if u.edit != nil {
		selected = cells.Shadow
	}
	u.list.Draw(&s.hits, body, selected, func(i int, row cells.Area) { u.drawOption(s, row, &options[i], i) },
		func(i int) []tui.Effect { return u.change(s, &options[i], 1, " ") })
	if u.err != "" {
		help.Put(1, 0, words.Truncate(u.err, help.W-2), cells.Bad)
	} else {
		help.Put(1, 0, words.Truncate(options[u.list.Sel].Help, help.W-2), cells.Faint)
	}
	text := "Tab section  ↑↓ setting  ←→ Space change  Enter type  F12 w save  Esc done"
	if s.flash.text != "" {
		foot.Put(1, 0, words.Truncate(s.flash.text, foot.W-2), s.flash.style)
	} else {
		foot.Put(1, 0, words.Truncate(text, foot.W-2), cells.Faint)
	}
}

func (u *setup) drawTabs(s *State, row cells.Area) {
	x := 1
	for i, sec := range sections {
		style := cells.Text
		if i == u.section {
			style = cells.Banner
		}
		start := x
		x = row.Put(x, 0, " "+sec.title+" ", style)
		s.hits.Add(row.Sub(start, 0, x-start, 1), func(m tui.Mouse) []tui.Effect {
			if m.Action == tui.Press {
				u.section, u.list, u.edit = i, widget.List{}, nil
			}
			return nil
		})
	}
	row.HLine(0, 1, row.W, cells.Faint)
}

func (u *setup) drawOption(s *State, row cells.Area, o *config.Option, i int) {
	row.Put(1, 0, o.Title, cells.Text)
	value := row.Sub(16, 0, row.W-17, 1)
	if u.edit != nil && i == u.list.Sel {
		u.edit.Draw(value, cells.Strong)
		return
	}
	text := words.Escape(o.Get(&s.cfg))
	switch {
	case o.Kind() == config.Switch:
		text = map[string]string{"true": "[x]", "false": "[ ]"}[text]
	case text == "":
		text = "(none)"
	case o.Choices != nil || o.Kind() == config.Length:
		text = "◂ " + text + " ▸"
	}
	value.Put(0, 0, words.Truncate(text, value.W), cells.Strong)
}
