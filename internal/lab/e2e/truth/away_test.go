package truth

import (
	"fmt"
	"strings"
	"time"
)

// awayScenarios check what is said of a time without samples.
func awayScenarios() []scenario {
	return []scenario{{"history of a time without ttmond", alone, historyAway}}
}

// historyAway: ttmond is killed, and comes back after a while. The history has
// no point of that time, and every other point is what was so.
func historyAway(s *stage) {
	v := viewer{}
	h := s.play(composition{
		Boards: "p150a", Viewers: []viewer{v},
		Programs: []program{{Kind: scripted, Layout: 3, MiB: 512}},
		Steps:    []step{{Do: ttmondOn}, {Do: begin}},
	})
	l := h.viewAs(v)
	more := func(than int) {
		s.until("the history has further points", func() bool {
			l = h.viewAs(v)
			return l.historyPoints() > than
		})
	}
	more(0)
	before := l.historyPoints()
	h.past = append(h.past, moment{since: time.Now()})
	h.daemonStep(ttmondAway)
	h.remember()
	more(before)
	away := 0
	for _, text := range l.broken {
		if strings.HasPrefix(text, "history: ") {
			away++
			s.Log(text)
		}
	}
	s.fact("points of the time without ttmond", "0", fmt.Sprint(away))
	for i := range l.figures {
		if f := &l.figures[i]; f.view == "history" {
			s.figure(f.what, f.want.low, f.said, f.doubts)
		}
	}
}

// historyPoints is how many points of the history can be judged.
func (l *looks) historyPoints() (n int) {
	for i := range l.figures {
		if l.figures[i].view == "history" {
			n++
		}
	}
	return n
}
