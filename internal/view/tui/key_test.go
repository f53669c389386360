package tui

import (
	"testing"

	"github.com/gdamore/tcell/v2"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		ev   *tcell.EventKey
		want Key
	}{
		{tcell.NewEventKey(tcell.KeyRune, 'a', tcell.ModNone), "a"},
		{tcell.NewEventKey(tcell.KeyRune, 'G', tcell.ModShift), "G"},
		{tcell.NewEventKey(tcell.KeyRune, ' ', tcell.ModNone), " "},
		{tcell.NewEventKey(tcell.KeyRune, 'é', tcell.ModNone), "é"},
		{tcell.NewEventKey(tcell.KeyRune, 'x', tcell.ModAlt), "alt-x"},
		{tcell.NewEventKey(tcell.KeyUp, 0, tcell.ModNone), "up"},
		{tcell.NewEventKey(tcell.KeyLeft, 0, tcell.ModShift), "shift-left"},
		{tcell.NewEventKey(tcell.KeyRight, 0, tcell.ModCtrl), "ctrl-right"},
		{tcell.NewEventKey(tcell.KeyF9, 0, tcell.ModNone), "f9"},
		{tcell.NewEventKey(tcell.KeyF12, 0, tcell.ModNone), "f12"},
		{tcell.NewEventKey(tcell.KeyEnter, 0, tcell.ModNone), "enter"},
		{tcell.NewEventKey(tcell.KeyTab, 0, tcell.ModNone), "tab"},
		{tcell.NewEventKey(tcell.KeyBacktab, 0, tcell.ModNone), "shift-tab"},
		{tcell.NewEventKey(tcell.KeyBacktab, 0, tcell.ModShift), "shift-tab"},
		{tcell.NewEventKey(tcell.KeyBackspace2, 0, tcell.ModNone), "backspace"},
		{tcell.NewEventKey(tcell.KeyBackspace, 0, tcell.ModCtrl), "backspace"},
		{tcell.NewEventKey(tcell.KeyEsc, 0, tcell.ModNone), "esc"},
		{tcell.NewEventKey(tcell.KeyCtrlC, 0, tcell.ModCtrl), "ctrl-c"},
		{tcell.NewEventKey(tcell.KeyCtrlL, 0, tcell.ModCtrl), "ctrl-l"},
		{tcell.NewEventKey(tcell.KeyPrint, 0, tcell.ModNone), ""},
	} {
		t.Run(c.ev.Name(), func(t *testing.T) {
			if got := keyOf(c.ev); got != c.want {
				t.Errorf("%s is %q, want %q", c.ev.Name(), got, c.want)
			}
		})
	}
	if r, ok := Key("é").Rune(); r != 'é' || !ok {
		t.Errorf("Rune = %q %v", r, ok)
	}
	for _, k := range []Key{"", "up", "ctrl-a"} {
		if _, ok := k.Rune(); ok {
			t.Errorf("%q types a character", k)
		}
	}
}

func TestMouse(t *testing.T) {
	var tr translator
	for _, c := range []struct {
		buttons tcell.ButtonMask
		want    Event
	}{
		{tcell.ButtonNone, nil},
		{tcell.ButtonPrimary, Mouse{3, 4, Press}},
		{tcell.ButtonPrimary, Mouse{3, 4, Drag}},
		{tcell.ButtonNone, Mouse{3, 4, Release}},
		{tcell.ButtonNone, nil},
		{tcell.ButtonSecondary, Mouse{3, 4, RightPress}},
		{tcell.WheelUp, Mouse{3, 4, WheelUp}},
		{tcell.WheelDown, Mouse{3, 4, WheelDown}},
		{tcell.ButtonMiddle, nil},
	} {
		if got := tr.event(tcell.NewEventMouse(3, 4, c.buttons, tcell.ModNone)); got != c.want {
			t.Errorf("buttons %b give %v, want %v", c.buttons, got, c.want)
		}
	}
}

func TestPaste(t *testing.T) {
	var tr translator
	for _, e := range []tcell.Event{
		tcell.NewEventPaste(true),
		tcell.NewEventKey(tcell.KeyRune, 'q', tcell.ModNone),
		tcell.NewEventKey(tcell.KeyEnter, 0, tcell.ModNone),
		tcell.NewEventKey(tcell.KeyRune, 'y', tcell.ModNone),
	} {
		if ev := tr.event(e); ev != nil {
			t.Errorf("%T inside a paste is %v", e, ev)
		}
	}
	if ev := tr.event(tcell.NewEventPaste(false)); ev != Paste("q y") {
		t.Errorf("pasted %v", ev)
	}
	if ev := tr.event(tcell.NewEventKey(tcell.KeyRune, 'q', tcell.ModNone)); ev != Key("q") {
		t.Errorf("after a paste, q is %v", ev)
	}
}
