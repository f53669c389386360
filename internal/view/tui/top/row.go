package top

import (
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// id is the identity of a process.
type id struct {
	pid   int
	start uint64
}

// row is one line of the process table.
type row struct {
	p      *model.Process
	sort   metric.Value // of the column sorted by
	parent bool         // stands for a parent that uses no device itself; its process has the devices of all that it stands for
	below  int          // of a parent: how many processes it stands for
	depth  int
	branch string // what the tree draws before the command
}

func (r *row) id() id { return id{r.p.PID, r.p.StartTicks} }

// command is what the process was started with, or what else is known of it.
func (r *row) command() string {
	if r.parent {
		return "(parent; uses no device itself)"
	}
	return words.Command(r.p)
}
