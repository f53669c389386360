package workload

import (
	"context"
	"log/slog"
	"time"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

const (
	// deliver is how often records reach the ledger: tt-metal's receiver looks
	// more often, and a hundredth of a second is what ttmon calls unreported.
	deliver = 5 * time.Millisecond
	// loadEvery is how often the load follows what the chips did.
	loadEvery = 250 * time.Millisecond
	// polling is the share of a processor that a thread takes which waits for a
	// chip: it polls. A real one takes all of it.
	polling = 0.1
)

// worker has the chips of a workload do what a script says, and writes it down
// as libttmon does.
type worker struct {
	player *player
	work   *ledgerfile.ReportedWork
	chips  []*ledgerfile.ReportedChip
	link   link
	load   float64 // while it works

	waiting     bool
	settled     bool
	last        time.Duration // turn before
	since       time.Duration // of the time that the load is made of
	worked      time.Duration // in it
	said        float64       // load
	outstanding bool          // a program was enqueued that has not completed
}

// newWorker makes the part of the ledger that is about programs. A chip without
// PCIe of its own does not report, as with tt-metal.
func newWorker(r *ledgerfile.Reporter, load float64, steps []workStep, chips []chipRef, link link) (*worker, error) {
	work, err := r.Work(max(1, len(chips)))
	if err != nil {
		return nil, err
	}
	now := ledgerfile.Now()
	w := &worker{player: newPlayer(steps, now), work: work, link: link, load: load, said: load, last: now, since: now}
	for _, c := range chips {
		if c.remote {
			continue
		}
		chip, err := work.Chip(c.logical)
		if err != nil {
			return nil, err
		}
		w.chips = append(w.chips, chip)
	}
	return w, nil
}

// run plays the script until ctx ends.
func (w *worker) run(ctx context.Context) {
	tick := time.NewTicker(deliver)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case order := <-w.link.orders:
			if err := w.player.Order(order, ledgerfile.Now()); err != nil {
				slog.Error("cannot run workload order", "order", order, "err", err)
			}
		case <-tick.C:
		}
		w.turn(ledgerfile.Now())
	}
}

// turn reports what has happened until now.
func (w *worker) turn(now time.Duration) {
	done, state, last := w.player.Play(now)
	w.report(done, state, last)
	if state == waiting {
		spin(time.Duration(polling * float64(deliver)))
	}
	if state == working || state == waiting && !w.player.Hung() {
		w.worked += now - w.last
	}
	w.last = now
	if span := now - w.since; span >= loadEvery {
		if load := w.load * min(1, w.worked.Seconds()/span.Seconds()); load != w.said {
			w.link.load(load)
			w.said = load
		}
		w.since, w.worked = now, 0
	}
}

// report writes programs that completed and what the host does into the ledger.
func (w *worker) report(done []program, state workState, last string) {
	programs := make([]ledgerfile.ReportedProgram, len(done))
	for i, p := range done {
		programs[i] = ledgerfile.ReportedProgram{Name: p.Name, Start: p.Start, End: p.End}
	}
	enqueued := len(done)
	if w.outstanding {
		enqueued--
	}
	if w.outstanding = state != resting; w.outstanding {
		enqueued++
	}
	if enqueued > 0 {
		w.work.Enqueued(uint64(enqueued), last)
		w.settled = false
	}
	for _, c := range w.chips {
		c.Report(programs)
	}
	switch {
	case state == waiting && !w.waiting:
		w.work.Wait(ledgerfile.WaitFinish)
	case state == resting && !w.settled, state != waiting && w.waiting:
		w.work.Finished()
		w.settled = state == resting
	}
	w.waiting = state == waiting
}

// spin takes processor time.
func spin(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
	}
}
