package text

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// AppendFleetLinks draws a line for each link between hosts, those that are down
// first: both ends, what each reports, and at which end the cause is.
func AppendFleetLinks(dst []byte, f *sums.HostLinks, now time.Time, rows int) []byte {
	if f.Ends == 0 && len(f.Links) == 0 {
		return append(dst, "No link between hosts is known: ttmond reports them with firmware = \"table\", once a program has opened the boards.\n"...)
	}
	dst = append(append(dst, f.Summary()...), '\n')
	for _, line := range f.Trouble(now) {
		dst = fmt.Appendf(dst, "  %s\n", line)
	}
	shown := f.Links[:min(len(f.Links), rows)]
	if len(shown) > 0 {
		dst = append(dst, '\n')
	}
	t := &lines.Table{Indent: 2, Columns: []lines.Column{{}, {Right: true}, {Tight: true}, {Tight: true}, {}, {Rest: true}}}
	for i := range shown {
		a, b := &shown[i].Ends[0], &shown[i].Ends[1]
		t.Add(words.HostLinkEnd(a), words.EndReport(a.Report), "↔", words.EndReport(b.Report), words.HostLinkEnd(b), words.LinkVerdict(&f.Verdicts[i]))
	}
	dst = appendTable(dst, t)
	if n := len(f.Links) - len(shown); n > 0 {
		dst = fmt.Appendf(dst, "  … and %s more\n", words.Count(n, "link"))
	}
	if !f.Complete {
		dst = append(dst, "  Only links that are down are listed: name a HOST for all of its links.\n"...)
	}
	return dst
}
