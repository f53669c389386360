package node

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/handover"
)

// serveTimeout is how long the allocation server may take until it can serve a client.
const serveTimeout = 500 * time.Millisecond

// health adds to the health of the API what the rest of the daemon knows.
func (d *ttmond) health(ctx context.Context, h *api.Health) {
	h.PID = os.Getpid()
	d.checkServer(ctx, h)
	h.Budgets = append(append(h.Budgets, d.server.Budgets()...), d.watcher.budgets()...)
	h.LostLines = d.logs.Lost()
	if p := d.pause.Load(); p > 0 {
		seconds := math.Round(time.Duration(p).Seconds()*1e6) / 1e6
		h.Pause = &seconds
	}
	if why := d.allocProblem.Load(); why != nil {
		h.Warnings = append(h.Warnings, api.Problem{Part: "alloc_socket", Reason: "not served: " + *why})
	}
	if err := d.backlog.Failed(); err != nil {
		h.Warnings = append(h.Warnings, api.Problem{Part: "backlog", Reason: "events are kept in memory only: " + err.Error()})
	}
	h.Uprobe = d.watcher.health()
	d.checkSources(h)
	d.checkDescriptors(h)
	d.checkManager(h)
}

// checkServer asks the allocation server itself: figures alone could be those of before
// it got stuck.
func (d *ttmond) checkServer(ctx context.Context, h *api.Health) {
	if d.server.Ping(ctx, serveTimeout) != nil {
		reason := fmt.Sprintf("the allocation server has not answered for %v", serveTimeout)
		h.Problems = append(h.Problems, api.Problem{Part: apitype.PartAllocServer, Reason: reason})
	}
	socket := d.server.Stats()
	h.AllocSocket = &socket
}

// checkSources asks each source how long it takes.
func (d *ttmond) checkSources(h *api.Health) {
	limit := 5*d.collector.pace.every() + 5*time.Second
	for _, r := range d.collector.collector.Runs() {
		h.AddRun(r.Name, r.Took, r.Since, time.Now(), limit)
	}
	if why := d.watcher.ended(); why != nil {
		h.Problems = append(h.Problems, api.Problem{Part: "uprobe", Reason: "allocators are no longer watched: " + reason(why)})
	}
}

func (d *ttmond) checkDescriptors(h *api.Health) {
	if n, err := proc.OpenDescriptors(); err == nil {
		h.Descriptors.Open = n
	}
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		h.Descriptors.Limit = int(min(l.Cur, math.MaxInt32))
	}
	if h.Descriptors.Open > h.Descriptors.Limit*9/10 {
		h.Warnings = append(h.Warnings, api.Problem{Part: "descriptors", Reason: fmt.Sprintf("%d of %d are open", h.Descriptors.Open, h.Descriptors.Limit)})
	}
}

// checkManager warns if systemd does not accept the watchdog's messages.
func (d *ttmond) checkManager(h *api.Health) {
	every, last := handover.WatchdogEvery(), d.notified.Load()
	if every == 0 || last == 0 {
		return
	}
	if age := time.Since(time.Unix(0, last)); age > every/2 {
		h.Warnings = append(h.Warnings, api.Problem{Part: "systemd", Reason: fmt.Sprintf("has not taken a message for %v", age.Round(time.Second))})
	}
}
