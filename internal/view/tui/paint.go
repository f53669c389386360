package tui

import (
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// painter keeps what the terminal shows and sends it only what changes.
type painter struct {
	screen    tcell.Screen
	now, then *cells.Grid // being drawn, on the terminal
	look      Appearance
	colours   *palette
	dirty     bool      // the terminal's contents are unknown
	resend    bool      // every cell is to be sent again
	sent      time.Time // when every cell was sent last
	ascii     bool      // the terminal shows nothing else
	console   bool      // the terminal is the kernel's own: few characters
}

func newPainter(s tcell.Screen) *painter {
	return &painter{screen: s, now: cells.NewGrid(0, 0), then: cells.NewGrid(0, 0), dirty: true}
}

// healEvery is how often every cell is sent again: a program started from the
// same terminal may overwrite the screen at any time without notice.
const healEvery = 15 * time.Second

// heal has the screen sent again if that is long ago.
func (p *painter) heal(now time.Time) {
	if now.Sub(p.sent) >= healEvery {
		p.resend = true
	}
}

// paint draws the app and reports whether anything had to be sent.
func (p *painter) paint(app App) bool {
	p.adopt(app.Appearance())
	w, h := p.screen.Size()
	if p.now.W != w || p.now.H != h {
		p.now.Resize(w, h)
	} else {
		p.now.Clear()
	}
	app.Draw(p.now)
	if p.ascii {
		p.now.WidenASCII()
	}
	if p.dirty {
		p.then.Resize(0, 0)
	}
	p.resend = p.resend || p.dirty
	if p.resend {
		// Unlocking marks the cells as not yet sent; unlike a Sync, nothing is
		// cleared, and so nothing flickers.
		p.screen.LockRegion(0, 0, w, h, false)
	}
	n := p.now.Diff(p.then, func(x, y int, c cells.Cell) {
		if c.Rune != 0 { // the cell left of it covers this one
			p.screen.Put(x, y, p.text(c), p.colours.of(c))
		}
	})
	moved := p.now.CursorX != p.then.CursorX || p.now.CursorY != p.then.CursorY
	if n == 0 && !moved && !p.resend {
		return false
	}
	p.screen.ShowCursor(p.now.CursorX, p.now.CursorY)
	if p.dirty {
		p.screen.Sync()
	} else {
		p.screen.Show()
	}
	if p.resend {
		p.sent = time.Now()
	}
	p.dirty, p.resend = false, false
	p.now, p.then = p.then, p.now
	return true
}

// adopt follows a change of theme or mouse.
func (p *painter) adopt(l Appearance) {
	if p.colours == nil || l.Theme != p.look.Theme {
		p.colours = paletteOf(themeOf(l.Theme, environ), p.screen.Colors() > 256)
		p.screen.SetStyle(p.colours.styles[cells.Text])
		p.dirty = true
	}
	if l.Mouse != p.look.Mouse {
		if l.Mouse {
			p.screen.EnableMouse(tcell.MouseButtonEvents | tcell.MouseDragEvents)
		} else {
			p.screen.DisableMouse()
		}
	}
	if l.Round != p.look.Round {
		p.dirty = true
	}
	p.look = l
}

// text is a cell's content as the terminal library wants it, without an
// allocation for nearly all cells: ASCII costs none, braille comes from a table.
func (p *painter) text(c cells.Cell) string {
	if p.ascii {
		return cells.ASCIIRune(c.Rune)
	}
	if p.console {
		c.Rune = console(c.Rune)
	}
	if p.look.Round && !p.console {
		c.Rune = round(c.Rune)
	}
	if c.More != "" {
		return string(c.Rune) + c.More
	}
	if c.Rune >= firstBraille && c.Rune < firstBraille+256 {
		at := 3 * (c.Rune - firstBraille)
		return braille[at : at+3]
	}
	return string(c.Rune)
}

// round is the round form of a corner.
func round(r rune) rune {
	switch r {
	case '┌':
		return '╭'
	case '┐':
		return '╮'
	case '└':
		return '╰'
	case '┘':
		return '╯'
	}
	return r
}

const firstBraille = '⠀'

// braille holds the 256 braille characters one after the other, three bytes each.
const braille = "" +
	"⠀⠁⠂⠃⠄⠅⠆⠇⠈⠉⠊⠋⠌⠍⠎⠏⠐⠑⠒⠓⠔⠕⠖⠗⠘⠙⠚⠛⠜⠝⠞⠟" +
	"⠠⠡⠢⠣⠤⠥⠦⠧⠨⠩⠪⠫⠬⠭⠮⠯⠰⠱⠲⠳⠴⠵⠶⠷⠸⠹⠺⠻⠼⠽⠾⠿" +
	"⡀⡁⡂⡃⡄⡅⡆⡇⡈⡉⡊⡋⡌⡍⡎⡏⡐⡑⡒⡓⡔⡕⡖⡗⡘⡙⡚⡛⡜⡝⡞⡟" +
	"⡠⡡⡢⡣⡤⡥⡦⡧⡨⡩⡪⡫⡬⡭⡮⡯⡰⡱⡲⡳⡴⡵⡶⡷⡸⡹⡺⡻⡼⡽⡾⡿" +
	"⢀⢁⢂⢃⢄⢅⢆⢇⢈⢉⢊⢋⢌⢍⢎⢏⢐⢑⢒⢓⢔⢕⢖⢗⢘⢙⢚⢛⢜⢝⢞⢟" +
	"⢠⢡⢢⢣⢤⢥⢦⢧⢨⢩⢪⢫⢬⢭⢮⢯⢰⢱⢲⢳⢴⢵⢶⢷⢸⢹⢺⢻⢼⢽⢾⢿" +
	"⣀⣁⣂⣃⣄⣅⣆⣇⣈⣉⣊⣋⣌⣍⣎⣏⣐⣑⣒⣓⣔⣕⣖⣗⣘⣙⣚⣛⣜⣝⣞⣟" +
	"⣠⣡⣢⣣⣤⣥⣦⣧⣨⣩⣪⣫⣬⣭⣮⣯⣰⣱⣲⣳⣴⣵⣶⣷⣸⣹⣺⣻⣼⣽⣾⣿"
