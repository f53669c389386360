package text

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// processes makes the grid of processes: one line each, whatever number of
// devices it uses.
func processes(s *model.Snapshot, o *Options) *grid {
	g := &grid{}
	var fill []func(*model.Process) cell
	add := func(col column, f func(*model.Process) cell) {
		g.columns = append(g.columns, col)
		fill = append(fill, f)
	}
	any := func(has func(*model.Process) bool) bool {
		for i := range s.Processes {
			if has(&s.Processes[i]) {
				return true
			}
		}
		return false
	}
	large := o.layoutWidth() >= wide

	add(column{head: "Dev", least: 3}, func(p *model.Process) cell { return c(words.Truncate(usedDevices(p), devWidth(o))) })
	add(column{head: "PID", least: 7, right: true}, pidCell)
	add(column{head: "User", least: 4, rank: 5}, func(p *model.Process) cell { return c(words.Truncate(owner(p), 12)) })
	if any(func(p *model.Process) bool { return words.Job(p) != words.Nothing }) {
		add(column{head: "Job", least: 3, rank: 10}, func(p *model.Process) cell {
			return c(words.Truncate(words.Job(p), jobWidth(o)))
		})
	}
	add(column{head: "Time", least: words.DurationWidth, right: true, rank: 8}, func(p *model.Process) cell { return c(runtime(s, p)) })
	if any(func(p *model.Process) bool { return p.CPU.Known() }) {
		add(column{head: "CPU", least: 5, right: true, rank: 20}, func(p *model.Process) cell {
			return c(living(p, words.Reading(p.CPU, words.CPU)))
		})
	}
	add(column{head: "RSS", least: words.BytesWidth, rank: 30}, func(p *model.Process) cell {
		return c(living(p, words.Reading(p.RSS, words.BytesColumn)))
	})
	add(column{head: "DRAM", least: words.FigureWidth}, func(p *model.Process) cell { return heldCell(p, model.DRAM) })
	add(column{head: "L1", least: words.FigureWidth, rank: 3, tight: true}, func(p *model.Process) cell { return heldCell(p, model.L1) })
	if large {
		for i, pool := range []model.Pool{model.L1Small, model.Trace, model.CB} {
			if any(func(p *model.Process) bool { return p.Held(pool).Positive() }) {
				add(column{head: words.PoolName(pool), least: words.FigureWidth, rank: 40 + i, tight: true}, func(p *model.Process) cell { return heldCell(p, pool) })
			}
		}
	}
	add(column{head: "Command", least: min(14, o.layoutWidth()/4), last: true}, func(p *model.Process) cell { return c(words.Command(p)) })

	for _, p := range byDevice(s) {
		var r row
		for _, f := range fill {
			r.cells = append(r.cells, f(p))
		}
		g.rows = append(g.rows, r)
	}
	return g
}

// byDevice lists the processes in the order of their first devices; those on
// no device of this host come last.
func byDevice(s *model.Snapshot) []*model.Process {
	list := make([]*model.Process, len(s.Processes))
	for i := range s.Processes {
		list[i] = &s.Processes[i]
	}
	first := func(p *model.Process) int {
		n := math.MaxInt
		for i := range p.Devices {
			if d := p.Devices[i].Device; d != model.NoDevice {
				n = min(n, d)
			}
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b *model.Process) int { return cmp.Compare(first(a), first(b)) })
	return list
}

// living is what is known of a running process; of others there is nothing.
func living(p *model.Process, text string) string {
	if p.State != model.Running {
		return words.Nothing
	}
	return text
}

func devWidth(o *Options) int { return min(11, o.layoutWidth()/6) }

func jobWidth(o *Options) int {
	if o.layoutWidth() < wide {
		return 20
	}
	return 40
}

// usedDevices lists the devices of a process: "0-7, 12"; "–" for chips that
// are none of this host's.
func usedDevices(p *model.Process) string {
	var list []int
	for i := range p.Devices {
		if d := p.Devices[i].Device; d != model.NoDevice {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return words.Nothing
	}
	return words.Ranges(list)
}

func pidCell(p *model.Process) cell {
	if p.State == model.Hidden {
		return c(words.Nothing, faint)
	}
	return c(strconv.Itoa(p.PID))
}

func owner(p *model.Process) string {
	if p.State != model.Running && !p.User.Known() {
		return words.Nothing
	}
	return words.Foreign(p.User)
}

func runtime(s *model.Snapshot, p *model.Process) string {
	if p.StartTime.IsZero() {
		return words.Nothing
	}
	return words.Duration(s.Time.Sub(p.StartTime))
}

func heldCell(p *model.Process, pool model.Pool) cell {
	b := p.Held(pool)
	switch {
	case b.Known():
		return c(words.FigureColumn(b))
	case p.State != model.Running:
		return c(words.Nothing, faint)
	}
	return c(words.FigureOr(b, p.Tracking()), faint)
}
