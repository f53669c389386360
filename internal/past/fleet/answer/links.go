package answer

import (
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Links are Ethernet links between hosts, those that are down first.
type Links struct {
	Schema string `json:"schema,omitempty"` // ttmon.fleet.links/1, where they are an answer of their own
	// Ends is how many ends hosts report: two of a link between hosts of the fleet.
	Ends int `json:"ends"`
	Down int `json:"down"`
	// Complete: List has every link. Otherwise those that are down.
	Complete bool      `json:"complete"`
	Trouble  []string  `json:"trouble"` // what is wrong, in words
	Suspects []Suspect `json:"suspects"`
	List     []Link    `json:"list"`
}

// Suspect is a host that links are down because of.
type Suspect struct {
	Host     string     `json:"host"`
	Evidence string     `json:"evidence"`
	Links    int        `json:"links"`
	Peers    []string   `json:"peers"`
	Since    *time.Time `json:"last_reported,omitempty"` // of a host that is away
}

// Link is a link between two hosts.
type Link struct {
	Ends     [2]LinkEnd `json:"ends"`
	Down     bool       `json:"down"`
	Suspect  string     `json:"suspect,omitempty"` // a host; missing where either end can be the cause
	Evidence string     `json:"evidence,omitempty"`
	Verdict  string     `json:"verdict,omitempty"` // in words
}

// LinkEnd is one end of a link.
type LinkEnd struct {
	Host    string `json:"host,omitempty"` // missing: no host reports the chip
	Device  *int   `json:"device"`
	Chip    string `json:"chip_id"` // UMD's unique id; too large for some readers of JSON as a number
	Channel int    `json:"channel"`
	Report  string `json:"report"` // up, down, host_away, device_failed, not_read, unknown_host
	Text    string `json:"text"`   // the same in words
	Name    string `json:"name"`   // of the end, in words
}

// Links asks for every link between hosts, or for those of one.
func (a *Querier) Links(host string, now time.Time) (*Links, error) {
	all, err := a.Query.Links(host)
	if err != nil {
		return nil, err
	}
	out := linksOf(all, now)
	out.Schema = "ttmon.fleet.links/1"
	return out, nil
}

func linksOf(f *sums.HostLinks, now time.Time) *Links {
	if f == nil {
		return nil
	}
	out := &Links{Ends: f.Ends, Down: f.Down(), Complete: f.Complete, Trouble: append([]string{}, f.Trouble(now)...), Suspects: []Suspect{}, List: []Link{}}
	for i := range f.Suspects {
		s := &f.Suspects[i]
		x := Suspect{Host: s.Host, Evidence: evidence(s.Evidence), Links: s.Links, Peers: append([]string{}, s.Peers...)}
		if s.Evidence == assess.SuspectAway && !s.Since.IsZero() {
			at := s.Since.UTC()
			x.Since = &at
		}
		out.Suspects = append(out.Suspects, x)
	}
	for i := range f.Links {
		v := &f.Verdicts[i]
		l := Link{Down: v.Down, Suspect: v.Suspect, Evidence: evidence(v.Evidence), Verdict: words.LinkVerdict(v)}
		for k := range l.Ends {
			l.Ends[k] = linkEnd(&f.Links[i].Ends[k])
		}
		out.List = append(out.List, l)
	}
	return out
}

func linkEnd(e *assess.HostLinkEnd) LinkEnd {
	out := LinkEnd{
		Host: e.Host, Chip: strconv.FormatUint(e.Chip, 10), Channel: e.Channel,
		Report: report(e.Report), Text: words.EndReport(e.Report), Name: words.HostLinkEnd(e),
	}
	if e.Device != model.NoDevice {
		out.Device = &e.Device
	}
	return out
}

// evidence is what a verdict rests on, for programs.
func evidence(e assess.LinkEvidence) string {
	switch e {
	case assess.SuspectAway:
		return "host_away"
	case assess.SuspectDevice:
		return "device_failed"
	case assess.SuspectAllWays:
		return "links_to_several_hosts"
	}
	return ""
}

// report is what an end reports, for programs.
func report(r assess.EndReport) string {
	switch r {
	case assess.EndUp:
		return "up"
	case assess.EndDown:
		return "down"
	case assess.EndHostAway:
		return "host_away"
	case assess.EndDeviceFailed:
		return "device_failed"
	case assess.EndUnread:
		return "not_read"
	}
	return "unknown_host"
}
