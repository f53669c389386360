package query

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/sums"
)

const (
	// maxLinks is how many links between hosts are shown and judged. Where there are
	// more, those that are down come first.
	maxLinks = 1000
	// perQuestion is how many chips a question names.
	perQuestion = 100
	// reportedLately is how long a host that reports nothing any more is remembered
	// for the links that lead to it.
	reportedLately = "1d"
)

// portKey is an end of a link: a chip by UMD's id, and its channel.
type portKey struct {
	chip    uint64
	channel int
}

// linkEnd is an end of a link between hosts as the engine has it.
type linkEnd struct {
	assess.HostLinkEnd
	remote portKey
}

// readEnd takes an end from the labels of a series. Series that another program
// made up are left out.
func (q *Query) readEnd(l map[string]string) (e linkEnd, ok bool) {
	numbers := make([]int, 3)
	for i, name := range []string{"device", "channel", "remote_channel"} {
		n, err := strconv.Atoi(l[name])
		if err != nil || n < 0 {
			return e, false
		}
		numbers[i] = n
	}
	own, err := strconv.ParseUint(l["link_chip"], 10, 64)
	far, err2 := strconv.ParseUint(l["remote_chip"], 10, 64)
	if err != nil || err2 != nil {
		return e, false
	}
	e.HostLinkEnd = assess.HostLinkEnd{Host: l[q.label], Device: numbers[0], Chip: own, Channel: numbers[1]}
	e.remote = portKey{far, numbers[2]}
	return e, true
}

func (e *linkEnd) key() portKey { return portKey{e.Chip, e.Channel} }

// linkEnds are ends of links by their place.
type linkEnds map[portKey]linkEnd

// Links asks for the links between hosts that are down, and judges them; and for all
// others, where there are not too many, or of one host.
func (q *Query) Links(host string) (*sums.HostLinks, error) {
	out := &sums.HostLinks{}
	all := 0
	err := q.Sum(sums.Links(), func(l map[string]string, v float64) {
		all += int(v)
		if host == "" || l[q.label] == host {
			out.Ends += int(v)
		}
	})
	if err != nil || all == 0 {
		return out, err
	}
	out.Complete = out.Ends <= 2*maxLinks
	if err := q.judgeLinks(out, host); err != nil {
		return nil, err
	}
	if host != "" {
		out.Only(host)
	}
	return out, nil
}

// linksDown asks for the links that are down alone. Without any end there is nothing
// to ask.
func (q *Query) linksDown(ends int) (*sums.HostLinks, error) {
	if ends == 0 {
		return nil, nil
	}
	out := &sums.HostLinks{Ends: ends}
	return out, q.judgeLinks(out, "")
}

// judgeLinks asks for both ends of links, and judges them.
func (q *Query) judgeLinks(out *sums.HostLinks, host string) error {
	ends, err := q.ends(host, out.Complete)
	if err != nil {
		return err
	}
	others, err := q.otherEnds(ends)
	if err != nil {
		return err
	}
	out.Links = pairEnds(ends, others)
	out.Verdicts, out.Suspects = assess.JudgeHostLinks(out.Links)
	assess.SortHostLinks(out.Links, out.Verdicts)
	return nil
}

// ends asks for the ends that are down, and for all others of a host, or of every
// host.
func (q *Query) ends(host string, all bool) (linkEnds, error) {
	ends := linkEnds{}
	add := func(report assess.EndReport) func(map[string]string, float64) {
		return func(l map[string]string, v float64) {
			e, ok := q.readEnd(l)
			if !ok || len(ends) >= 2*maxLinks {
				return
			}
			e.Report = report
			if report == assess.EndUnread && v != 1 {
				return
			}
			if _, is := ends[e.key()]; !is {
				ends[e.key()] = e
			}
		}
	}
	if err := q.Sum(sums.LinksDown(), add(assess.EndDown)); err != nil {
		return nil, err
	}
	if !all {
		return ends, nil
	}
	only := ""
	if host != "" {
		only = metric.Matcher(q.label, host)
	}
	questions := []string{"tenstorrent_outside_link_up{" + only + "} == 1", "tenstorrent_outside_link_info{" + only + "}"}
	for i, report := range []assess.EndReport{assess.EndUp, assess.EndUnread} {
		if err := q.each(questions[i], add(report)); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// otherEnds asks what is known of the other ends of links: what they report now, or
// which host had them lately, and how it is.
func (q *Query) otherEnds(ends linkEnds) (linkEnds, error) {
	missing := map[uint64]bool{}
	for _, e := range ends {
		if _, known := ends[e.remote]; !known {
			missing[e.remote.chip] = true
		}
	}
	others := linkEnds{}
	chips := slices.Sorted(maps.Keys(missing))
	for some := range slices.Chunk(chips[:min(len(chips), 2*maxLinks)], perQuestion) {
		if err := q.addOthers(others, some); err != nil {
			return nil, err
		}
	}
	return others, q.explain(others)
}

// addOthers adds the ends at some chips.
func (q *Query) addOthers(others linkEnds, chips []uint64) error {
	names := make([]string, len(chips))
	for i, c := range chips {
		names[i] = strconv.FormatUint(c, 10)
	}
	only := "{" + metric.Matcher("link_chip", names...) + "}"
	lately := func(expr string, since func(v float64) time.Time) error {
		return q.each(expr, func(l map[string]string, v float64) {
			e, ok := q.readEnd(l)
			if !ok {
				return
			}
			e.Report, e.Since = assess.EndHostAway, since(v)
			if old, is := others[e.key()]; !is || e.Since.After(old.Since) { // a board can have moved
				others[e.key()] = e
			}
		})
	}
	err := lately("last_over_time(tenstorrent_outside_link_info"+only+"["+reportedLately+"])", func(float64) time.Time { return time.Time{} })
	if err != nil {
		return err
	}
	// When it was last seen, to a minute: what was there for less has no time.
	err = lately("max_over_time(timestamp(tenstorrent_outside_link_info"+only+")["+reportedLately+":1m])", func(v float64) time.Time { return time.UnixMilli(int64(v * 1000)) })
	if err != nil {
		return err
	}
	return q.each("tenstorrent_outside_link_up"+only, func(l map[string]string, v float64) {
		e, ok := q.readEnd(l)
		if !ok {
			return
		}
		if e.Report = assess.EndDown; v == 1 {
			e.Report = assess.EndUp
		}
		others[e.key()] = e
	})
}

// explain tells ends that are silent because their device does not work, or is not
// read, from those whose host is away.
func (q *Query) explain(others linkEnds) error {
	hosts := map[string]bool{}
	for _, e := range others {
		if e.Report == assess.EndHostAway {
			hosts[e.Host] = true
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	only := metric.Matcher(q.label, slices.Sorted(maps.Keys(hosts))...)
	present, failed := map[string]bool{}, map[string]map[int]bool{}
	err := q.each("count by ("+q.label+") (tenstorrent_devices{"+only+"})", func(l map[string]string, _ float64) { present[l[q.label]] = true })
	if err != nil {
		return err
	}
	err = q.each("tenstorrent_device_state{"+only+`,state!="ok"} == 1`, func(l map[string]string, _ float64) {
		n, err := strconv.Atoi(l["device"])
		if err != nil {
			return
		}
		if failed[l[q.label]] == nil {
			failed[l[q.label]] = map[int]bool{}
		}
		failed[l[q.label]][n] = true
	})
	for key, e := range others {
		if e.Report != assess.EndHostAway || !present[e.Host] {
			continue
		}
		if e.Report = assess.EndUnread; failed[e.Host][e.Device] {
			e.Report = assess.EndDeviceFailed
		}
		e.Since = time.Time{}
		others[key] = e
	}
	return err
}

// pairEnds makes links of ends, each link once.
func pairEnds(ends, others linkEnds) (links []assess.HostLink) {
	seen := map[portKey]bool{}
	keys := slices.SortedFunc(maps.Keys(ends), func(a, b portKey) int {
		x, y := ends[a], ends[b]
		return cmp.Or(strings.Compare(x.Host, y.Host), cmp.Compare(x.Device, y.Device), cmp.Compare(x.Channel, y.Channel), cmp.Compare(x.Chip, y.Chip))
	})
	for _, key := range keys {
		e := ends[key]
		if seen[key] {
			continue
		}
		seen[key] = true
		far, ok := ends[e.remote]
		if !ok {
			far, ok = others[e.remote]
		}
		if !ok {
			far.HostLinkEnd = assess.NoEnd(e.remote.chip, e.remote.channel)
		}
		seen[e.remote] = true
		links = append(links, assess.HostLink{Ends: [2]assess.HostLinkEnd{e.HostLinkEnd, far.HostLinkEnd}})
	}
	return links
}
