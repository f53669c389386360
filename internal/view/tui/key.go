package tui

import (
	"github.com/gdamore/tcell/v2"
)

// Key is a key by name: the character it types ("a", "G", "/", " "), or
// "up", "pgdn", "enter", "f9", "ctrl-l", "shift-left", "alt-x".
type Key string

// Rune is the character the key types; ok is false for all other keys.
func (k Key) Rune() (r rune, ok bool) {
	for i, c := range k {
		if i > 0 {
			return 0, false
		}
		r = c
	}
	return r, k != ""
}

var keyNames = map[tcell.Key]Key{
	tcell.KeyUp: "up", tcell.KeyDown: "down", tcell.KeyLeft: "left", tcell.KeyRight: "right",
	tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdn", tcell.KeyHome: "home", tcell.KeyEnd: "end",
	tcell.KeyEnter: "enter", tcell.KeyTab: "tab", tcell.KeyBacktab: "shift-tab", tcell.KeyEsc: "esc",
	tcell.KeyBackspace: "backspace", tcell.KeyBackspace2: "backspace",
	tcell.KeyDelete: "delete", tcell.KeyInsert: "insert",
	tcell.KeyF1: "f1", tcell.KeyF2: "f2", tcell.KeyF3: "f3", tcell.KeyF4: "f4",
	tcell.KeyF5: "f5", tcell.KeyF6: "f6", tcell.KeyF7: "f7", tcell.KeyF8: "f8",
	tcell.KeyF9: "f9", tcell.KeyF10: "f10", tcell.KeyF11: "f11", tcell.KeyF12: "f12",
}

// keyOf names a key of the terminal library; it is empty for keys that have
// no meaning here.
func keyOf(e *tcell.EventKey) Key {
	if e.Key() == tcell.KeyRune {
		if e.Modifiers()&tcell.ModAlt != 0 {
			return Key("alt-" + string(e.Rune()))
		}
		return Key(string(e.Rune()))
	}
	if name, ok := keyNames[e.Key()]; ok {
		if e.Modifiers()&tcell.ModShift != 0 && name != "shift-tab" {
			return "shift-" + name
		}
		if e.Modifiers()&tcell.ModCtrl != 0 && name != "backspace" && name != "enter" && name != "tab" && name != "esc" {
			return "ctrl-" + name
		}
		return name
	}
	if e.Key() >= tcell.KeyCtrlA && e.Key() <= tcell.KeyCtrlZ {
		return Key("ctrl-" + string(rune('a'+e.Key()-tcell.KeyCtrlA)))
	}
	return ""
}

// translator turns the terminal library's events into ours. It remembers
// what belongs together: mouse buttons held down, a paste under way.
type translator struct {
	down  bool
	paste []rune // nil: none under way
}

func (t *translator) event(e tcell.Event) Event {
	switch e := e.(type) {
	case *tcell.EventKey:
		return t.key(e)
	case *tcell.EventMouse:
		return t.mouse(e)
	case *tcell.EventPaste:
		if e.Start() {
			t.paste = []rune{}
			return nil
		}
		text := string(t.paste)
		t.paste = nil
		return Paste(text)
	}
	return nil
}

func (t *translator) key(e *tcell.EventKey) Event {
	if t.paste != nil {
		if e.Key() == tcell.KeyRune {
			t.paste = append(t.paste, e.Rune())
		} else {
			t.paste = append(t.paste, ' ')
		}
		return nil
	}
	if k := keyOf(e); k != "" {
		return k
	}
	return nil
}

func (t *translator) mouse(e *tcell.EventMouse) Event {
	m := Mouse{}
	m.X, m.Y = e.Position()
	switch b := e.Buttons(); {
	case b&tcell.WheelUp != 0:
		m.Action = WheelUp
	case b&tcell.WheelDown != 0:
		m.Action = WheelDown
	case b&tcell.ButtonPrimary != 0 && t.down:
		m.Action = Drag
	case b&tcell.ButtonPrimary != 0:
		m.Action, t.down = Press, true
	case b&tcell.ButtonSecondary != 0:
		m.Action = RightPress
	case b == tcell.ButtonNone && t.down:
		m.Action, t.down = Release, false
	default:
		return nil
	}
	return m
}
