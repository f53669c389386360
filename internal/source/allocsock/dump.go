package allocsock

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// Dump is a text that a client asked for with DUMP_REMAINING or DUMP_KERNELS.
// Old servers printed it on their own terminal.
type Dump struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"` // "remaining" or "kernels"
	PID  int       `json:"pid"`  // of the client
	UID  int       `json:"uid"`
	Text string    `json:"text"`
}

// dumpRing keeps the last dumps.
type dumpRing struct {
	mu   sync.Mutex
	list []Dump
}

const maxDumps = 16

func (r *dumpRing) add(d Dump) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, d)
	if len(r.list) > maxDumps {
		i := r.worst()
		r.list = slices.Delete(r.list, i, i+1)
	}
}

// worst is the index of the dump to drop: the oldest of the user who has most.
func (r *dumpRing) worst() (index int) {
	count := map[int]int{}
	for i := range r.list {
		count[r.list[i].UID]++
	}
	for i := range r.list {
		if count[r.list[i].UID] > count[r.list[index].UID] {
			index = i
		}
	}
	return index
}

// Dumps returns the last dumps that clients asked for, newest first. It may
// be called from any goroutine.
func (s *Server) Dumps() []Dump {
	s.dumps.mu.Lock()
	defer s.dumps.mu.Unlock()
	list := slices.Clone(s.dumps.list)
	slices.Reverse(list)
	return list
}

func (s *Server) recordDump(kind string, pid, uid int, text string) {
	s.dumps.add(Dump{Time: time.Now(), Kind: kind, PID: pid, UID: uid, Text: text})
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.userOf(uid)
	if len(text) > logText {
		s.logFor(u, slog.LevelInfo, "client requested dump", "kind", kind, "pid", pid, "uid", uid, "bytes", len(text))
		return
	}
	s.logFor(u, slog.LevelInfo, "client requested dump", "kind", kind, "pid", pid, "uid", uid, "text", text)
}

// Viewer is the user a text is made for. The ids of buffers and kernels can be
// addresses in the process that reported them, so only its user sees them.
type Viewer struct {
	UID int
	All bool // root
}

func (v Viewer) sees(uid int) bool { return v.All || v.UID == uid }

// id writes an id as a viewer may see it.
func (v Viewer) id(x *line) string {
	if !v.sees(x.uid) {
		return "-"
	}
	return fmt.Sprintf("%#x", x.ID)
}

// maxListed is how many buffers of one pool are listed one by one.
const maxListed = 10

// maxLines bounds the buffers that a text lists.
const maxLines = 4096

// maxText bounds a text that lists devices: a client may have named thousands.
const maxText = 256 << 10

// line is a buffer and its owner.
type line struct {
	ledger.Buffer
	pid, uid int
}

// devicePool is a pool of a device.
type devicePool struct {
	device int32
	pool   model.Pool
}

// DumpText lists the live buffers: per device and pool their number and bytes,
// and each buffer where they are few.
func DumpText(l *ledger.Ledger, v Viewer, now time.Time) string {
	procs, devices := l.Processes(), l.Devices()
	total, holders := 0, 0
	for _, h := range procs {
		if total += h.Buffers; h.Buffers > 0 {
			holders++
		}
	}
	if total == 0 {
		return "nothing is allocated\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d buffers are allocated by %d processes\n", total, holders)
	lists := listFew(l, procs, devices)
	for _, u := range devices {
		if u.Count() == 0 {
			continue
		}
		if b.Len() > maxText {
			b.WriteString("and more devices\n")
			break
		}
		fmt.Fprintf(&b, "device %d\n", u.Device)
		for pool, n := range u.Buffers {
			if n == 0 {
				continue
			}
			fmt.Fprintf(&b, "  %-8s %d buffers, %s\n", poolName(model.Pool(pool)), n, mib(u.Bytes[pool]))
			writeLines(&b, lists[devicePool{u.Device, model.Pool(pool)}], v, now)
		}
	}
	return b.String()
}

// listFew collects, in one walk, the buffers of pools that have few.
func listFew(l *ledger.Ledger, procs []ledger.Holding, devices []ledger.Use) map[devicePool][]line {
	lists := map[devicePool][]line{}
	for _, u := range devices {
		for pool, n := range u.Buffers {
			if n > 0 && n <= maxListed {
				lists[devicePool{u.Device, model.Pool(pool)}] = []line{}
			}
		}
	}
	if len(lists) == 0 {
		return lists
	}
	for _, h := range procs {
		l.Walk(h.ProcessID, func(x ledger.Buffer) bool {
			at := devicePool{x.Device, x.Pool}
			if list, ok := lists[at]; ok && len(list) < 2*maxListed {
				lists[at] = append(list, line{x, h.PID, h.UID})
			}
			return true
		})
	}
	return lists
}

func writeLines(b *strings.Builder, lines []line, v Viewer, now time.Time) {
	sorted.By(lines, func(a, b *line) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID), cmp.Compare(a.pid, b.pid))
	})
	for _, x := range lines {
		fmt.Fprintf(b, "    %s  %.2f KiB  pid %d  %s old\n", v.id(&x), float64(x.Size)/(1<<10), x.pid, age(now, x.Born))
	}
}

// KernelText lists the kernels of every device, the largest of them.
func KernelText(l *ledger.Ledger, v Viewer, now time.Time) string {
	lines, _ := largest(l, l.Processes(), func(x ledger.Buffer) bool { return x.Kind == ledger.KindKernel })
	by := map[int32][]line{}
	for _, x := range lines {
		by[x.Device] = append(by[x.Device], x)
	}
	var b strings.Builder
	for _, u := range l.Devices() {
		n := u.Buffers[model.Kernel]
		if n == 0 {
			continue
		}
		if b.Len() > maxText {
			b.WriteString("and more devices\n")
			break
		}
		fmt.Fprintf(&b, "device %d: %d kernels, %s\n", u.Device, n, mib(u.Bytes[model.Kernel]))
		writeLines(&b, by[u.Device], v, now)
		if uint64(len(by[u.Device])) < n {
			fmt.Fprintf(&b, "    and smaller ones\n")
		}
	}
	if b.Len() == 0 {
		return "no kernel is loaded\n"
	}
	return b.String()
}

// largest returns the maxLines largest buffers of all processes.
func largest(l *ledger.Ledger, procs []ledger.Holding, keep func(ledger.Buffer) bool) (lines []line, cut bool) {
	bySize := func(a, b *line) int { return cmp.Compare(b.Size, a.Size) }
	for _, h := range procs {
		if h.Buffers == 0 {
			continue
		}
		top, _ := l.Largest(h.ProcessID, maxLines+1, keep)
		for _, x := range top {
			lines = append(lines, line{x, h.PID, h.UID})
		}
		if len(lines) > 4*maxLines { // however many processes there are
			sorted.Stable(lines, bySize)
			lines, cut = lines[:maxLines], true
		}
	}
	sorted.Stable(lines, bySize)
	if len(lines) > maxLines {
		lines, cut = lines[:maxLines], true
	}
	return lines, cut
}

// allText answers QUERY_ALL: a line per buffer, then an empty line.
func allText(l *ledger.Ledger, v Viewer, now time.Time) string {
	lines, cut := largest(l, l.Processes(), nil)
	var b strings.Builder
	fmt.Fprintf(&b, "# device pool id bytes pid age_s; %d buffers\n", l.Stats().Buffers)
	for _, x := range lines {
		fmt.Fprintf(&b, "%d %s %s %d %d %.2f\n", x.Device, poolName(x.Pool), v.id(&x), x.Size, x.pid, max(now.Sub(x.Born), 0).Seconds())
	}
	if cut {
		fmt.Fprintf(&b, "# only the %d largest are listed\n", maxLines)
	}
	b.WriteByte('\n')
	return b.String()
}

func poolName(p model.Pool) string {
	if p == ledger.Host {
		return "HOST"
	}
	return strings.ToUpper(p.String())
}

func mib(n uint64) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }

func age(now, born time.Time) time.Duration {
	return max(now.Sub(born), 0).Round(100 * time.Millisecond)
}
