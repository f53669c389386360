package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// memoryHead are the columns of /v1/memory, with a blank between each two. Programs read
// them by name.
const memoryHead = "device bus_id chip chip_id pool used_bytes bound total_bytes free_bytes largest_free_bytes banks\n"

// wholeDevice stands in the column chip of the sums of a device.
const wholeDevice = "all"

// memoryQuery is which devices are asked for.
type memoryQuery struct {
	Device *int `param:"device" help:"kernel index; all where it is left out"`
}

// memory answers with a table that a program reads without a parser of JSON: a line for
// each pool of each device, and of each of its chips. What is missing is "-".
func (s *Server) memory(w http.ResponseWriter, r *http.Request) {
	device := -1
	q := memoryQuery{&device}
	if !asked(w, r, &q) {
		return
	}
	device = *q.Device
	t := s.opt.Feed.current()
	if t.snap == nil && !s.awaitFirst(r.Context()) {
		Fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
		return
	}
	late := false
	if s.opt.Demand != nil {
		now := time.Now()
		t = s.fresh(r.Context(), now)
		late = t.Began.Before(now)
	} else {
		t = s.opt.Feed.current()
	}
	snap := s.Viewpoint(r).Filter(t.snap)
	var b strings.Builder
	b.WriteString(memoryHead)
	found := device < 0
	for i := range snap.Devices {
		d := &snap.Devices[i]
		if device >= 0 && d.Index != device {
			continue
		}
		found = true
		writeMemory(&b, d, nil, late)
		for k := range d.Chips {
			writeMemory(&b, d, &d.Chips[k], late)
		}
	}
	if !found {
		Fail(w, http.StatusNotFound, "there is no device %d", device)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(b.String()))
}

// writeMemory writes the lines of a chip, or, without one, of a device. late: its figures
// are of before the client asked, so that none of them is sure.
func writeMemory(b *strings.Builder, d *model.Device, chip *model.Chip, late bool) {
	m, name, id := &d.Memory, wholeDevice, "-"
	if chip != nil {
		m, name, id = &chip.Memory, oneWord(chip.Name), bytesOrNone(chip.ID)
	}
	for _, pool := range model.Pools() {
		p := m.Pools[pool]
		if late {
			p.Used = p.Used.Doubted(model.Unsure)
		}
		used, bound := "-", "missing"
		if n, how, known := p.Used.Best(); known {
			used, bound = strconv.FormatUint(n, 10), how.String()
		}
		fmt.Fprintf(b, "%d %s %s %s %s %s %s %s %s %s %s\n", d.Index, oneWord(d.BusID), name, id, pool, used, bound,
			bytesOrNone(p.Total), bytesOrNone(p.Free), bytesOrNone(p.LargestFree), banksOf(d, pool))
	}
}

// oneWord is a text that can stand between two blanks.
func oneWord(text string) string {
	if text = strings.Join(strings.Fields(words.Escape(text)), "_"); text == "" {
		return "-"
	}
	return text
}

func bytesOrNone(r model.Reading[uint64]) string {
	if !r.Known() {
		return "-"
	}
	return strconv.FormatUint(r.V, 10)
}

// banksOf is how many banks a chip of a device has for a pool: channels of DRAM; L1 has
// as many as a program's allocator uses, which only that knows.
func banksOf(d *model.Device, pool model.Pool) string {
	if card, ok := board.ByCard(d.Board.V); ok && (pool == model.DRAM || pool == model.Trace) && card.Banks > 0 {
		return strconv.Itoa(int(card.Banks))
	}
	return "-"
}
