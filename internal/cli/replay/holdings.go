package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/cli/mem"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/act"
)

// Blocks are the allocators of a process at the moment.
func (r *Recording) Blocks(_ context.Context, t act.Target) (out *blocks.Process, err error) {
	err = r.Player.With(func(s *recording.State) error {
		for _, p := range s.Processes() {
			if is(p, t) {
				out = s.Blocks(p.ID)
				return nil
			}
		}
		return act.ErrUnknown
	})
	return out, err
}

// is reports whether a recorded process is the target.
func is(p recording.Process, t act.Target) bool {
	return p.PID == t.PID && (p.Start == 0 || t.StartTicks == 0 || p.Start == t.StartTicks)
}

// Buffers are the blocks of a process at the moment.
func (r *Recording) Buffers(_ context.Context, t act.Target) (out []act.Buffer, err error) {
	err = r.Player.With(func(s *recording.State) error {
		snap, err := s.Snapshot()
		if err != nil || snap == nil {
			return err
		}
		chips := chipsOf(snap)
		found := false
		for _, p := range s.Processes() {
			if is(p, t) {
				found = true
				out = appendBuffers(out, s, p.ID, chips)
			}
		}
		if !found {
			return act.ErrUnknown
		}
		return nil
	})
	return out, err
}

// chip is which device a chip is on, and its name there.
type chip struct {
	device int
	name   string
}

// chipsOf are the chips of a snapshot, by id.
func chipsOf(snap *model.Snapshot) map[uint64]chip {
	chips := map[uint64]chip{}
	for i := range snap.Devices {
		for _, c := range snap.Devices[i].Chips {
			if id, ok := c.ID.Get(); ok {
				chips[id] = chip{snap.Devices[i].Index, c.Name}
			}
		}
	}
	return chips
}

// appendBuffers lists the blocks of a process, once for each chip they are on.
func appendBuffers(out []act.Buffer, s *recording.State, process uint32, chips map[uint64]chip) []act.Buffer {
	for _, id := range s.Lists() {
		def, live, _ := s.List(id)
		if def.Process != process {
			continue
		}
		for b := range live.All() {
			x := act.Buffer{Device: model.NoDevice, Pool: def.Pool, Bytes: b.Asked, Age: s.Time.Sub(time.Unix(0, b.Born)), Note: place(s, b)}
			if x.Bytes == 0 {
				x.Bytes = b.Size * def.Geometry.Banks
			}
			for _, id := range def.Chips {
				x.Device, x.Chip = model.NoDevice, ""
				if c, ok := chips[id]; ok {
					x.Device, x.Chip = c.device, c.name
				}
				out = append(out, x)
			}
		}
	}
	return out
}

// place is where a block was allocated, for people.
func place(s *recording.State, b blocks.Block) string {
	site, ok := s.Site(b.Site)
	if !ok {
		return fmt.Sprintf("at %#x", b.Addr)
	}
	var parts []string
	if site.Tag != "" {
		parts = append(parts, "["+site.Tag+"]")
	}
	if f, ok := site.Where(); ok {
		parts = append(parts, fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Function))
	}
	return words.Escape(strings.Join(parts, " "))
}

// Held is what programs held at the moment: all of them, or the one with a pid.
func (r *Recording) Held(pid int) (*mem.Answer, error) {
	a := &mem.Answer{}
	places := map[uint32]string{}
	err := r.Player.With(func(s *recording.State) (err error) {
		a.Time = r.Player.Position()
		for _, p := range s.Processes() {
			if pid == 0 || p.PID == pid {
				a.Processes = append(a.Processes, s.Blocks(p.ID))
			}
		}
		notePlaces(places, s)
		a.Snapshot, err = s.Snapshot()
		return err
	})
	if err != nil {
		return nil, exit.With(exit.Internal, "%w", err)
	}
	if len(a.Processes) == 0 {
		return nil, exit.With(exit.NoDevice, "no program reported its blocks at that moment: choose another with --at, or record the program (ttmon record -- COMMAND)")
	}
	if a.Snapshot == nil {
		a.Snapshot = &model.Snapshot{}
	}
	if len(places) > 0 {
		a.Place = func(b blocks.Block) string { return places[b.Site] }
	}
	return a, nil
}

// notePlaces notes where blocks were allocated, by the number of the site.
func notePlaces(places map[uint32]string, s *recording.State) {
	for _, id := range s.Lists() {
		_, live, _ := s.List(id)
		for b := range live.All() {
			if _, known := places[b.Site]; b.Site != 0 && !known {
				places[b.Site] = place(s, b)
			}
		}
	}
}

// AppendOutput prints what the recorded program printed.
func (r *Recording) AppendOutput(dst []byte, asJSON bool) ([]byte, error) {
	cur := r.Reader.Begin()
	for {
		x, err := cur.Next()
		if err != nil {
			return dst, nil // what follows cannot be read; AppendMissing says so
		}
		if x.Kind != recording.KindOutput {
			continue
		}
		if !asJSON {
			dst = fmt.Appendf(dst, "%s %d  %s\n", x.Time.Local().Format("15:04:05.000"), x.Output.Stream, words.Escape(x.Output.Text))
			continue
		}
		b, err := json.Marshal(map[string]any{"time": x.Time.UTC(), "stream": x.Output.Stream, "text": x.Output.Text})
		if err != nil {
			return nil, fmt.Errorf("encoding output: %w", err)
		}
		dst = append(append(dst, b...), '\n')
	}
}
