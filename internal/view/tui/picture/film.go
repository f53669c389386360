package picture

import (
	"fmt"
	"math"
	"time"
)

// Frame is a screen of a film and how long it is shown.
type Frame struct {
	Screen *Screen
	For    time.Duration
}

// Film draws screens of one size, one after the other, for ever, as an animation that
// needs no script, so that it moves in an image, too. A row that is in many screens
// is drawn once. Viewers that ask for less motion get the
// screen that is shown longest.
func Film(frames []Frame) []byte {
	if len(frames) == 0 {
		return nil
	}
	first := frames[0].Screen
	p := painter{screen: first}
	p.writeHead(first)
	width := math.Ceil(float64(first.W)*cellW + 2*pad) // whole, so that every screen is as sharp as the first
	var total time.Duration
	for _, f := range frames {
		total += f.For
	}
	fmt.Fprintf(&p.buf, "<style>.film{animation:film %ss step-end infinite}@keyframes film{", num(total.Seconds()))
	var at time.Duration
	longest := 0
	for i, f := range frames {
		if f.For > frames[longest].For {
			longest = i
		}
		fmt.Fprintf(&p.buf, "%s%%{transform:translateX(%spx)}", num(100*at.Seconds()/total.Seconds()), num(0-width*float64(i)))
		at += f.For
	}
	fmt.Fprintf(&p.buf, "}@media(prefers-reduced-motion){.film{animation:none;transform:translateX(%spx)}}</style>\n", num(-width*float64(longest)))
	known := map[string]int{} // rows by how they are drawn, to their numbers
	var uses []byte
	p.buf.WriteString("<defs>\n")
	for i, f := range frames {
		uses = append(uses, p.uses(f.Screen, float64(i)*width, known)...)
	}
	p.buf.WriteString("</defs>\n<g class=\"film\">\n")
	p.buf.Write(uses)
	p.buf.WriteString("</g>\n</svg>\n")
	return p.buf.Bytes()
}

// uses draws the rows of a screen that are not known yet, and returns what shows the
// whole screen at x.
func (p *painter) uses(s *Screen, x float64, known map[string]int) (out []byte) {
	for y := range s.H {
		row := painter{screen: &Screen{W: s.W, H: 1, FG: s.FG, BG: s.BG, Round: s.Round, Cells: s.Cells[y*s.W : (y+1)*s.W]}}
		row.row(0)
		text := row.buf.String()
		if text == "" {
			continue
		}
		n, ok := known[text]
		if !ok {
			n = len(known)
			known[text] = n
			fmt.Fprintf(&p.buf, "<g id=\"r%d\">%s</g>\n", n, text)
		}
		out = fmt.Appendf(out, "<use href=\"#r%d\" x=\"%s\" y=\"%s\"/>\n", n, num(x), num(float64(y)*cellH))
	}
	return out
}
