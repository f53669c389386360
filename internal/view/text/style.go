package text

import (
	"time"

	"github.com/ttmon/ttmon/internal/view/lines"
)

// Options say for whom something is printed. The zero Options are for a file:
// no colour, a layout of 100 columns with nothing cut off at the right.
type Options struct {
	lines.Options
	Version string         // of ttmon, for the head line
	Zone    *time.Location // of times; nil means local
	Plain   bool           // no bars: a narrower, quieter table
	Who     bool           // whom to ask about each process
	Names   bool           // of tt-metal for the chips, as the tt_smi of the prototype had them
}

func (o *Options) zone() *time.Location {
	if o.Zone == nil {
		return time.Local
	}
	return o.Zone
}

// printer appends what this package prints, for whom Options say.
type printer struct {
	lines.Printer
	o Options
}

func newPrinter(dst []byte, o Options) *printer {
	return &printer{lines.Printer{Options: o.Options, Buf: dst}, o}
}
