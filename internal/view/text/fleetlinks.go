package text

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/fleet/sums"
	"github.com/ttmon/ttmon/internal/view/words"
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
	width := [2]int{}
	for i := range shown {
		for k := range width {
			width[k] = max(width[k], words.Width(words.HostLinkEnd(&shown[i].Ends[k])))
		}
	}
	const state = 13
	for i := range shown {
		a, b := &shown[i].Ends[0], &shown[i].Ends[1]
		dst = fmt.Appendf(dst, "  %s  %s ↔ %s  %s", words.Pad(words.HostLinkEnd(a), width[0]), words.PadLeft(words.EndReport(a.Report), state),
			words.Pad(words.EndReport(b.Report), state), words.Pad(words.HostLinkEnd(b), width[1]))
		if text := words.LinkVerdict(&f.Verdicts[i]); text != "" {
			dst = append(dst, "  "+text...)
		}
		dst = append(bytes.TrimRight(dst, " "), '\n')
	}
	if n := len(f.Links) - len(shown); n > 0 {
		dst = fmt.Appendf(dst, "  … and %s more\n", words.Count(n, "link"))
	}
	if !f.Complete {
		dst = append(dst, "  Only links that are down are listed: name a HOST for all of its links.\n"...)
	}
	return dst
}
