package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// serveAPI answers ttmon and everybody else. The listening socket stays open
// after it, for a successor.
func (d *ttmond) serveAPI(ctx context.Context) error {
	l, err := listenerOf(d.inherited.api)
	if err != nil {
		return fmt.Errorf("serving the API: %w", err)
	}
	return d.api.Serve(ctx, l)
}

// elsewhere is the answer to requests for history.
const elsewhere = "ttmond answers for the present: history, events, jobs, alerts, PromQL and what the page shows are ttmon-server's, at its own socket (" + apitype.ServerSocket + ")"

// newAPI makes the API, for all the ways to it.
func (d *ttmond) newAPI() *api.Server {
	root := hostfs.At(d.cfg.Root)
	return api.New(api.Options{
		Feed:   &d.collector.feed,
		Ledger: d.ledger,
		Hiding: readHiding,
		Dump: func(kind string, uid int, all bool) string {
			v := allocsock.Viewer{UID: uid, All: all}
			if kind == "kernels" {
				return allocsock.KernelText(d.ledger, v, time.Now())
			}
			return allocsock.DumpText(d.ledger, v, time.Now())
		},
		Dumps:     d.dumps,
		Health:    d.health,
		Restart:   d.restart,
		Interval:  d.collector.pace.every,
		Demand:    d.collector.pace.demand,
		Place:     d.collector.collector.Numbered,
		Stale:     d.collector.collector.Leftovers,
		Topology:  func(s *model.Snapshot) *model.Topology { return collect.Topology(root, s) },
		Blocks:    d.findBlocks,
		Changes:   d.watcher.follow(),
		Programs:  d.watcher.followPrograms(),
		Stream:    d.streamed(),
		Failures:  d.failures.store,
		Lines:     api.FindLines(d.ledgerOf, d.collector.lines),
		Elsewhere: elsewhere,
		Version:   version.Version,
		Log:       d.log,
	})
}

func (d *ttmond) dumps() (list []api.Dump) {
	for _, dump := range d.server.Dumps() {
		list = append(list, api.Dump(dump))
	}
	return list
}

// listenerOf makes a listener that does not own fd.
func listenerOf(fd int) (net.Listener, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), "api")
	defer f.Close()
	return net.FileListener(f)
}

// readHiding tells how /proc hides processes from ordinary users: as the first
// process of the host has it mounted, since ours may be another.
func readHiding() api.Hiding {
	b, err := proc.HostMounts(hostfs.Root{})
	if err != nil {
		return api.Hiding{Level: 2, GID: -1}
	}
	return api.ParseHiding(b)
}
