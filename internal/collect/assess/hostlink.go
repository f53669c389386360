package assess

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// HostLink is an Ethernet link between two hosts, with what each of its ends
// reports.
type HostLink struct{ Ends [2]HostLinkEnd }

// HostLinkEnd is one end of a link between two hosts.
type HostLinkEnd struct {
	Host    string // as an engine names it; empty: no host reports the chip
	Device  int    // kernel index; model.NoDevice where Host is empty
	Chip    uint64 // UMD's unique id
	Channel int
	Report  EndReport
	Since   time.Time // EndHostAway: when the host last reported this end
}

// EndReport is what is known of an end of a link.
type EndReport uint8

// The reports.
const (
	EndUnseen       EndReport = iota // no host reports the chip
	EndUp                            // it reports that the link is up
	EndDown                          // it reports that the link is down
	EndHostAway                      // its host reported the link lately, and reports nothing any more
	EndDeviceFailed                  // its host is there, and its device does not work
	EndUnread                        // its host and its device are there, and the state of the link is not read
)

// LinkVerdict is what is wrong with a link between two hosts, and at which end.
type LinkVerdict struct {
	Down bool
	// Suspect is the host at whose end the cause is; empty: it may be either end.
	Suspect  string
	Evidence LinkEvidence
}

// LinkEvidence is what a verdict on a link rests on.
type LinkEvidence uint8

// The evidence, the strongest first.
const (
	NoEvidence     LinkEvidence = iota
	SuspectAway                 // the suspect reports nothing any more
	SuspectDevice               // the device at the suspect's end does not work
	SuspectAllWays              // the suspect has links down to several hosts, and the host at the other end to fewer
)

// SuspectHost is a host that links between hosts are down because of.
type SuspectHost struct {
	Host     string
	Evidence LinkEvidence // the strongest
	Links    int
	Peers    []string  // the hosts at the other ends
	Since    time.Time // SuspectAway: when it last reported
}

// JudgeHostLinks judges links between hosts, each by itself and all together, and
// lists the suspects, the one with most links first. A verdict stands for the link of
// the same index.
//
// A link is down if an end says so; that the other end is silent is no proof, since
// its host may be up with only its monitor gone. Where neither a host nor a device is
// out of order, the links that a host has down to other hosts are compared: a host
// that lost the links to several others is more likely the cause than each of those,
// which lost those to it alone. One cable between two hosts proves nothing.
func JudgeHostLinks(links []HostLink) (verdicts []LinkVerdict, suspects []SuspectHost) {
	verdicts = make([]LinkVerdict, len(links))
	lost := map[string]map[string]bool{} // hosts, and to which others they have links down
	for i := range links {
		l, v := &links[i], &verdicts[i]
		if v.Down = l.down(); !v.Down {
			continue
		}
		if v.Suspect, v.Evidence = l.failedEnd(); v.Suspect != "" {
			continue
		}
		a, b := l.Ends[0].Host, l.Ends[1].Host
		if a != "" && b != "" && a != b {
			noteLost(lost, a, b)
			noteLost(lost, b, a)
		}
	}
	for i := range links {
		v, ends := &verdicts[i], &links[i].Ends
		if !v.Down || v.Suspect != "" || ends[0].Host == "" || ends[1].Host == "" {
			continue
		}
		a, b := len(lost[ends[0].Host]), len(lost[ends[1].Host])
		switch {
		case a > 1 && a > b:
			v.Suspect, v.Evidence = ends[0].Host, SuspectAllWays
		case b > 1 && b > a:
			v.Suspect, v.Evidence = ends[1].Host, SuspectAllWays
		}
	}
	return verdicts, suspectsOf(links, verdicts)
}

func noteLost(lost map[string]map[string]bool, host, other string) {
	if lost[host] == nil {
		lost[host] = map[string]bool{}
	}
	lost[host][other] = true
}

func (l *HostLink) down() bool {
	return l.Ends[0].Report == EndDown || l.Ends[1].Report == EndDown
}

// failedEnd is the host at the one end that is out of order; empty where none is, or
// both are.
func (l *HostLink) failedEnd() (host string, evidence LinkEvidence) {
	for _, e := range []struct {
		report   EndReport
		evidence LinkEvidence
	}{{EndHostAway, SuspectAway}, {EndDeviceFailed, SuspectDevice}} {
		a, b := l.Ends[0].Report == e.report, l.Ends[1].Report == e.report
		switch {
		case a && !b:
			return l.Ends[0].Host, e.evidence
		case b && !a:
			return l.Ends[1].Host, e.evidence
		}
	}
	return "", NoEvidence
}

// suspectsOf adds up the verdicts by host.
func suspectsOf(links []HostLink, verdicts []LinkVerdict) (list []SuspectHost) {
	at := map[string]int{}
	for i, v := range verdicts {
		if v.Suspect == "" {
			continue
		}
		k, ok := at[v.Suspect]
		if !ok {
			k, at[v.Suspect] = len(list), len(list)
			list = append(list, SuspectHost{Host: v.Suspect, Evidence: v.Evidence})
		}
		s := &list[k]
		s.Links++
		s.Evidence = min(s.Evidence, v.Evidence)
		for _, e := range links[i].Ends {
			switch {
			case e.Host != v.Suspect:
				if e.Host != "" && !slices.Contains(s.Peers, e.Host) {
					s.Peers = append(s.Peers, e.Host)
				}
			case e.Since.After(s.Since):
				s.Since = e.Since
			}
		}
	}
	for i := range list {
		slices.Sort(list[i].Peers)
	}
	slices.SortStableFunc(list, func(a, b SuspectHost) int {
		return cmp.Or(cmp.Compare(b.Links, a.Links), cmp.Compare(a.Host, b.Host))
	})
	return list
}

// SortHostLinks puts links that are down first, those of one suspect together, and
// their verdicts with them.
func SortHostLinks(links []HostLink, verdicts []LinkVerdict) {
	order := make([]int, len(links))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int {
		a, b, x, y := &links[i].Ends, &links[k].Ends, &verdicts[i], &verdicts[k]
		if x.Down != y.Down {
			if x.Down {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(y.Suspect, x.Suspect), compareEnds(&a[0], &b[0]), compareEnds(&a[1], &b[1]))
	})
	sortedLinks, sortedVerdicts := make([]HostLink, len(links)), make([]LinkVerdict, len(links))
	for to, from := range order {
		sortedLinks[to], sortedVerdicts[to] = links[from], verdicts[from]
	}
	copy(links, sortedLinks)
	copy(verdicts, sortedVerdicts)
}

func compareEnds(a, b *HostLinkEnd) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Chip, b.Chip), cmp.Compare(a.Channel, b.Channel))
}

// NoEnd is an end that no host reports.
func NoEnd(chip uint64, channel int) HostLinkEnd {
	return HostLinkEnd{Device: model.NoDevice, Chip: chip, Channel: channel}
}
