package words

import (
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// EndReport says what an end of a link between hosts reports.
func EndReport(r assess.EndReport) string {
	switch r {
	case assess.EndUp:
		return "up"
	case assess.EndDown:
		return "down"
	case assess.EndHostAway:
		return "host away"
	case assess.EndDeviceFailed:
		return "device failed"
	case assess.EndUnread:
		return "not read"
	}
	return "unknown host"
}

// HostLinkEnd names an end of a link between hosts: "node2 device 0 channel 6".
func HostLinkEnd(e *assess.HostLinkEnd) string {
	if e.Host == "" || e.Device == model.NoDevice {
		return fmt.Sprintf("chip %d channel %d", e.Chip, e.Channel)
	}
	return fmt.Sprintf("%s device %d channel %d", Escape(e.Host), e.Device, e.Channel)
}

// LinkSuspect says which host links are down because of, and why that is believed.
func LinkSuspect(s *assess.SuspectHost, now time.Time) string {
	links := Count(s.Links, "link")
	verb := " are"
	if s.Links == 1 {
		verb = " is"
	}
	peers := ""
	if len(s.Peers) > 0 {
		peers = " to " + hostNames(s.Peers)
	}
	switch s.Evidence {
	case assess.SuspectAway:
		since := ""
		if !s.Since.IsZero() && now.After(s.Since) {
			since = " since " + s.Since.Local().Format("15:04") + " (" + Span(now.Sub(s.Since).Round(time.Second)) + ")"
		}
		return fmt.Sprintf("%s has reported nothing%s, and %s%s%s down", Escape(s.Host), since, links, peers, verb)
	case assess.SuspectDevice:
		return fmt.Sprintf("%s has a device that does not work, and %s%s%s down", Escape(s.Host), links, peers, verb)
	}
	return fmt.Sprintf("%s is the likely cause of %s%s that%s down: no other host lost links to so many", Escape(s.Host), links, peers, verb)
}

// LinkEither says that links between two hosts are down, and that neither end is
// known to be the cause.
func LinkEither(a, b string, n int) string {
	verb := " are"
	if n == 1 {
		verb = " is"
	}
	switch {
	case a == "" || b == "":
		return fmt.Sprintf("%s of %s%s down, to chips that no host here reports: either end can be the cause", Count(n, "link"), Escape(a+b), verb)
	case a == b:
		return fmt.Sprintf("%s of %s to itself%s down", Count(n, "link"), Escape(a), verb)
	}
	return fmt.Sprintf("%s between %s and %s%s down: either end can be the cause", Count(n, "link"), Escape(a), Escape(b), verb)
}

// LinkVerdict says at which end of a link the cause is.
func LinkVerdict(v *assess.LinkVerdict) string {
	if !v.Down {
		return ""
	}
	switch v.Evidence {
	case assess.SuspectAway:
		return Escape(v.Suspect) + ": it reports nothing any more"
	case assess.SuspectDevice:
		return Escape(v.Suspect) + ": its device does not work"
	case assess.SuspectAllWays:
		return Escape(v.Suspect) + ": it lost links to several hosts"
	}
	return "either end"
}

// hostNames lists hosts, the first few by name.
func hostNames(list []string) string {
	const most = 4
	shown := make([]string, min(len(list), most))
	for i := range shown {
		shown[i] = Escape(list[i])
	}
	text := strings.Join(shown, ", ")
	if n := len(list) - len(shown); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
