package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// HealthState is the state of a daemon, with the number of its warnings: ok, 1 warning.
func HealthState(h *apitype.Health) string {
	state := words.Escape(h.Status)
	if n := len(h.Warnings); n > 0 {
		state += ", " + words.Count(n, "warning")
	}
	return state
}

// AppendHealth prints how a ttmond is doing.
func AppendHealth(dst []byte, path string, h *apitype.Health) []byte {
	dst = fmt.Appendf(dst, "ttmond %s at %s, pid %d, up %v\n\n", words.Escape(h.Version), words.Escape(path), h.PID, seconds(h.Uptime).Round(time.Second))
	row := func(name, format string, args ...any) {
		dst = fmt.Appendf(dst, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("state", "%s", HealthState(h))
	for _, p := range h.Problems {
		row("", "%s: %s", words.Escape(p.Part), words.Escape(p.Reason))
	}
	for _, p := range h.Warnings {
		row("warning", "%s: %s", words.Escape(p.Part), words.Escape(p.Reason))
	}
	if h.SnapshotAge != nil {
		row("snapshots", "latest is %v old", seconds(*h.SnapshotAge).Round(100*time.Millisecond))
	} else {
		row("snapshots", "none yet")
	}
	if len(h.Sources) > 0 {
		row("sources", "%s", sourcesText(h))
	}
	row("tracked", "%d processes, %d buffers, %d events so far", h.Ledger.Processes, h.Ledger.Buffers, h.Ledger.Events)
	writeWatch(row, h.Uprobe)
	if c := h.AllocSocket; c != nil {
		row("clients", "%d on the allocation socket, %d watching the API", c.Connections, h.Watchers)
	} else {
		row("clients", "%d watching the API", h.Watchers)
	}
	row("descriptors", "%d of %d", h.Descriptors.Open, h.Descriptors.Limit)
	memory := words.Bytes(h.HeapBytes)
	if h.MemoryLimit > 0 {
		memory += " of " + words.Bytes(h.MemoryLimit)
	}
	row("memory", "%s", memory)
	if h.Pause != nil {
		row("takeover", "clients waited %v", seconds(*h.Pause).Round(time.Microsecond))
	}
	left := fmt.Sprintf("%d log lines", h.LostLines)
	if c := h.AllocSocket; c != nil {
		left = fmt.Sprintf("%d unread replies, %d malformed messages, %s", c.Dropped, c.Rejected, left)
	}
	row("dropped", "%s", left)
	return appendBudgets(dst, h.Budgets)
}

// writeWatch says how allocators are watched, or why they are not.
func writeWatch(row func(name, format string, args ...any), u *apitype.Watch) {
	switch {
	case u == nil:
		return
	case u.State != apitype.WatchOn:
		row("allocators", "%s: %s", words.Escape(string(u.State)), words.Escape(u.Reason))
		return
	}
	row("allocators", "%d processes watched, %d libraries, %d events so far, %d lost", u.Processes, len(u.Libraries), u.Events, u.Lost)
	if len(u.Detached) > 0 {
		row("", "no longer watched, they allocate too often: %v", u.Detached)
	}
	if u.Late != "" {
		row("", "%s", words.Escape(u.Late))
	}
	for _, l := range u.Libraries {
		if l.Reason != "" {
			row("", "%s is not watched: %s", words.Escape(l.Path), words.Escape(l.Reason))
		}
		if len(l.Unseen) > 0 {
			row("", "%s: failed allocations are not seen, its release lacks the functions: %s", words.Escape(l.Path), words.Escape(strings.Join(l.Unseen, ", ")))
		}
	}
}

// sourcesText says how long each source took.
func sourcesText(h *apitype.Health) string {
	var list []string
	for _, s := range h.Sources {
		text := fmt.Sprintf("%s %v", words.Escape(s.Name), seconds(s.Took).Round(100*time.Microsecond))
		if s.Late {
			text += " (late)"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func appendBudgets(dst []byte, budgets []budget.State) []byte {
	t := &lines.Table{Indent: 2, Columns: lines.Heads(">budget", ">used", ">limit", ">per user", ">refused", ">most by uid")}
	for _, b := range budgets {
		most := words.Nothing
		if len(b.Users) > 0 && b.Users[0].Used > 0 {
			most = strconv.Itoa(b.Users[0].UID)
		}
		count := func(n int64) string { return strconv.FormatInt(n, 10) }
		t.Add(words.Escape(b.Name), count(b.Used), count(b.All), count(b.PerUID), strconv.FormatUint(b.Refused, 10), most)
	}
	return appendTable(append(dst, '\n'), t)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
