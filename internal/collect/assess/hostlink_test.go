package assess_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/collect/assess"
)

// A link between two hosts is judged by what its ends report, and by what else their
// hosts have lost.
func TestJudgeHostLinks(t *testing.T) {
	const (
		unseen = assess.EndUnseen
		up     = assess.EndUp
		down   = assess.EndDown
		away   = assess.EndHostAway
		failed = assess.EndDeviceFailed
		unread = assess.EndUnread
	)
	type end struct {
		host   string
		report assess.EndReport
	}
	type link [2]end
	either := assess.LinkVerdict{Down: true}
	of := func(host string, why assess.LinkEvidence) assess.LinkVerdict {
		return assess.LinkVerdict{Down: true, Suspect: host, Evidence: why}
	}
	for _, tt := range []struct {
		name     string
		links    []link
		want     []assess.LinkVerdict
		suspects []string
	}{
		{"all up", []link{{{"a", up}, {"b", up}}}, []assess.LinkVerdict{{}}, nil},
		{"nothing is read", []link{{{"a", unread}, {"b", unread}}}, []assess.LinkVerdict{{}}, nil},
		{"a silent end is no broken link", []link{{{"a", up}, {"b", away}}}, []assess.LinkVerdict{{}}, nil},
		{"one cable", []link{{{"a", down}, {"b", down}}}, []assess.LinkVerdict{either}, nil},
		{"the ends disagree", []link{{{"a", down}, {"b", up}}}, []assess.LinkVerdict{either}, nil},
		{"all cables between two hosts", []link{{{"a", down}, {"b", down}}, {{"b", down}, {"a", down}}}, []assess.LinkVerdict{either, either}, nil},
		{"the other end is nowhere", []link{{{"a", down}, {"", unseen}}}, []assess.LinkVerdict{either}, nil},
		{"the other end is not read", []link{{{"a", down}, {"b", unread}}}, []assess.LinkVerdict{either}, nil},
		{"the other host is away", []link{{{"a", down}, {"b", away}}}, []assess.LinkVerdict{of("b", assess.SuspectAway)}, []string{"b"}},
		{"a device of the other host is lost", []link{{{"a", down}, {"b", failed}}}, []assess.LinkVerdict{of("b", assess.SuspectDevice)}, []string{"b"}},
		{
			"one host has lost all of its neighbours",
			[]link{{{"a", down}, {"b", down}}, {{"b", down}, {"c", down}}, {{"c", up}, {"a", up}}},
			[]assess.LinkVerdict{of("b", assess.SuspectAllWays), of("b", assess.SuspectAllWays), {}},
			[]string{"b"},
		},
		{
			"a ring that is down everywhere has no one cause",
			[]link{{{"a", down}, {"b", down}}, {{"b", down}, {"c", down}}, {{"c", down}, {"a", down}}},
			[]assess.LinkVerdict{either, either, either},
			nil,
		},
		{
			"two sick hosts side by side: the link between them is of either",
			[]link{{{"a", down}, {"b", down}}, {{"b", down}, {"c", down}}, {{"c", down}, {"d", down}}},
			[]assess.LinkVerdict{of("b", assess.SuspectAllWays), either, of("c", assess.SuspectAllWays)},
			[]string{"b", "c"},
		},
		{
			"what a host that is away explains does not count against its neighbours",
			[]link{{{"a", down}, {"b", away}}, {{"c", down}, {"b", away}}, {{"a", down}, {"d", down}}},
			[]assess.LinkVerdict{of("b", assess.SuspectAway), of("b", assess.SuspectAway), either},
			[]string{"b"},
		},
		{
			"cables of a host to itself are no neighbours",
			[]link{{{"a", down}, {"a", down}}, {{"a", down}, {"b", down}}},
			[]assess.LinkVerdict{either, either},
			nil,
		},
		{"both hosts are away", []link{{{"a", away}, {"b", away}}}, []assess.LinkVerdict{{}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var links []assess.HostLink
			for i, l := range tt.links {
				var x assess.HostLink
				for k, e := range l {
					x.Ends[k] = assess.HostLinkEnd{Host: e.host, Device: i, Channel: k, Report: e.report}
				}
				links = append(links, x)
			}
			verdicts, suspects := assess.JudgeHostLinks(links)
			if diff := cmp.Diff(tt.want, verdicts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var names []string
			for _, s := range suspects {
				names = append(names, s.Host)
			}
			if diff := cmp.Diff(tt.suspects, names); diff != "" {
				t.Errorf("suspects (-want +got):\n%s", diff)
			}
			for i := range links { // which end comes first does not matter
				slices.Reverse(links[i].Ends[:])
			}
			if again, _ := assess.JudgeHostLinks(links); !slices.Equal(verdicts, again) {
				t.Errorf("the other way around: %v, not %v", again, verdicts)
			}
		})
	}
}

// A suspect has its links added up, its neighbours by name, and when it was last
// seen; links that are down come first.
func TestSuspectHosts(t *testing.T) {
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	end := func(host string, r assess.EndReport, since time.Time) assess.HostLinkEnd {
		return assess.HostLinkEnd{Host: host, Report: r, Since: since}
	}
	links := []assess.HostLink{
		{Ends: [2]assess.HostLinkEnd{end("a", assess.EndUp, time.Time{}), end("c", assess.EndUp, time.Time{})}},
		{Ends: [2]assess.HostLinkEnd{end("c", assess.EndDown, time.Time{}), end("b", assess.EndHostAway, at)}},
		{Ends: [2]assess.HostLinkEnd{end("b", assess.EndHostAway, at.Add(time.Minute)), end("a", assess.EndDown, time.Time{})}},
	}
	verdicts, suspects := assess.JudgeHostLinks(links)
	want := []assess.SuspectHost{{Host: "b", Evidence: assess.SuspectAway, Links: 2, Peers: []string{"a", "c"}, Since: at.Add(time.Minute)}}
	if diff := cmp.Diff(want, suspects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	assess.SortHostLinks(links, verdicts)
	if !verdicts[0].Down || !verdicts[1].Down || verdicts[2].Down || links[2].Ends[1].Host != "c" {
		t.Errorf("those that are down are not first: %+v", verdicts)
	}
}
