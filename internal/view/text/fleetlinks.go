package text

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/view/words"
)

// FleetLinks are the Ethernet links between hosts, those that are down first.
type FleetLinks struct {
	Ends int // that hosts report: two of a link whose ends are both on hosts of the fleet
	// Complete: Links has all of them. Otherwise only those that are down.
	Complete bool
	Links    []assess.HostLink
	Verdicts []assess.LinkVerdict // of each link
	Suspects []assess.SuspectHost
}

// Only leaves the links of one host. The verdicts on them stay those of the fleet.
func (f *FleetLinks) Only(host string) {
	links, verdicts := f.Links, f.Verdicts
	f.Links, f.Verdicts = nil, nil
	for i := range links {
		if links[i].Ends[0].Host == host || links[i].Ends[1].Host == host {
			f.Links, f.Verdicts = append(f.Links, links[i]), append(f.Verdicts, verdicts[i])
		}
	}
	f.Suspects = slices.DeleteFunc(f.Suspects, func(s assess.SuspectHost) bool {
		return s.Host != host && !slices.Contains(s.Peers, host)
	})
}

// Down counts the links that are down.
func (f *FleetLinks) Down() (n int) {
	for i := range f.Verdicts {
		if f.Verdicts[i].Down {
			n++
		}
	}
	return n
}

// Trouble says which hosts links are down because of, a line each, and then between
// which hosts others are.
func (f *FleetLinks) Trouble(now time.Time) (lines []string) {
	for i := range f.Suspects {
		lines = append(lines, words.LinkSuspect(&f.Suspects[i], now))
	}
	type pair [2]string
	var order []pair
	count := map[pair]int{}
	for i := range f.Links {
		if v := &f.Verdicts[i]; !v.Down || v.Suspect != "" {
			continue
		}
		p := pair{f.Links[i].Ends[0].Host, f.Links[i].Ends[1].Host}
		if p[1] != "" && p[1] < p[0] || p[0] == "" {
			p[0], p[1] = p[1], p[0]
		}
		if count[p]++; count[p] == 1 {
			order = append(order, p)
		}
	}
	for _, p := range order {
		lines = append(lines, words.LinkEither(p[0], p[1], count[p]))
	}
	return lines
}

// Suspect is a host as the likely cause of links that are down; nil: it is not.
func (f *FleetLinks) Suspect(host string) *assess.SuspectHost {
	if f == nil {
		return nil
	}
	if i := slices.IndexFunc(f.Suspects, func(s assess.SuspectHost) bool { return s.Host == host }); i >= 0 {
		return &f.Suspects[i]
	}
	return nil
}

// Summary counts the links: "12 links between hosts, 2 down".
func (f *FleetLinks) Summary() string {
	down := "all up"
	if n := f.Down(); n > 0 {
		down = fmt.Sprintf("%d down", n)
	} else if slices.ContainsFunc(f.Links, unknownLink) {
		down = "none down, as far as they are read"
	}
	if !f.Complete {
		return fmt.Sprintf("%d ends of links between hosts, %s", f.Ends, down)
	}
	return fmt.Sprintf("%s between hosts, %s", words.Count(len(f.Links), "link"), down)
}

func unknownLink(l assess.HostLink) bool {
	return l.Ends[0].Report != assess.EndUp && l.Ends[1].Report != assess.EndUp
}

// AppendFleetLinks draws a line for each link between hosts, those that are down
// first: both ends, what each reports, and at which end the cause is.
func AppendFleetLinks(dst []byte, f *FleetLinks, now time.Time, rows int) []byte {
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
