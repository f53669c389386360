package top

import (
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// help lists all keys and what the screen means.
type help struct{ box widget.Help }

func (h *help) key(s *State, k tui.Key) []tui.Effect {
	if h.box.Key(k) {
		s.dialog = nil
	}
	return nil
}

func (h *help) draw(s *State, screen cells.Area) {
	h.box.Draw(&s.hits, screen, s.helpLines(), func() { s.dialog = nil })
}

// Surround sets the screen around this one.
func (s *State) Surround(a widget.Around) { s.around = a }

func (s *State) helpLines() []widget.HelpLine {
	var out []widget.HelpLine
	out = append(out, s.around.Help()...)
	if s.page != nil {
		out = append(out, widget.HelpOf("This page", s.bound(s.page.keys()))...)
	}
	out = append(out, widget.HelpOf("Main page", s.bound(onMain()))...)
	out = append(out, widget.HelpLine{}, widget.HelpLine{Text: "Moving"})
	out = append(out, moving...)
	out = append(out, widget.HelpOf("Charts in focus", s.bound(chartKeys()))...)
	out = append(out, widget.HelpOf("Everywhere", s.around.Leaves(s.bound(everywhere())))...)
	out = append(out, widget.HelpLine{}, widget.HelpLine{Text: "What the figures mean"})
	if p, ok := s.page.(interface{ meanings() []widget.HelpLine }); ok {
		out = append(out, p.meanings()...)
	}
	return append(out, meanings...)
}

var moving = []widget.HelpLine{
	{Key: "↑ ↓ j", Text: "up and down, in lists k too; in charts: from chart to chart"},
	{Key: "← → h l", Text: "scroll the command; in charts: the cursor"},
	{Key: "PgUp PgDn Ctrl-B Ctrl-F", Text: "a page; in charts: half a span back and on"},
	{Key: "Home End g G", Text: "first and last; in charts: oldest and now"},
	{Key: "Mouse", Text: "select, again to open; press a column title to sort; wheel; right button tags"},
}

var meanings = []widget.HelpLine{
	{Key: "DRAM L1", Text: "what programs allocated, next to what the chip has; free is not the difference"},
	{Key: "Power", Text: "of the core rail, next to its limit; the whole board draws more"},
	{Key: "Busy 62 %", Text: "share of the time in which a program ran on the chip, as tt-metal reports; not the share of its cores"},
	{Key: "Act. ~58 %", Text: "an estimate from power above idle, where it is not measured how busy a chip is"},
	{Key: "≥", Text: "at least: part of the sum is not known"},
	{Key: "denied", Text: "accounted, but not for your eyes: start ttmond, or run as root"},
	{Key: "–", Text: "none, or not offered by driver, firmware or program; Enter on the device says why"},
	{Key: "Gen4 x8↓", Text: "slower or narrower than board and slot can do"},
	{Key: "▲ in charts", Text: "something happened: e lists it"},
	{Key: "filter", Text: "= != < <= > >= ~ !~ and or not ( ); user=root,bob device=0-3 dram=? \"two words\""},
}
