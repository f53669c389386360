package text

import (
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Leftover is an accounting region in which dead processes left something.
type Leftover struct {
	Region  string
	Device  int // kernel index, or model.NoDevice
	Ghosts  []model.Ghost
	Blocked string // why it cannot be removed; empty if it can
}

// AppendStale appends a line per dead process: where it left what, since when,
// and whether that can be removed.
func AppendStale(dst []byte, list []Leftover, now time.Time, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	g := &grid{ruled: true, columns: []column{
		{head: "Dev", least: 3}, {head: "PID", least: 7, right: true}, {head: "Name", least: 4},
		{head: "DRAM", least: words.BytesWidth}, {head: "L1", least: words.BytesWidth}, {head: "Other", least: words.BytesWidth, rank: 2},
		{head: "Age", least: words.DurationWidth, right: true, rank: 1}, {head: "Region", least: 20, last: true},
	}}
	for _, l := range list {
		for i := range l.Ghosts {
			gh := &l.Ghosts[i]
			device := words.Nothing
			if l.Device != model.NoDevice {
				device = strconv.Itoa(l.Device)
			}
			written := words.Nothing
			if !gh.Updated.IsZero() {
				written = words.Duration(now.Sub(gh.Updated))
			}
			var others uint64
			for _, pool := range []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel} {
				others += gh.Bytes[pool].V
			}
			g.rows = append(g.rows, row{cells: []cell{
				c(device), c(strconv.Itoa(gh.PID)), c(words.Escape(gh.Name)),
				c(words.Reading(gh.Bytes[model.DRAM], words.BytesColumn)), c(words.Reading(gh.Bytes[model.L1], words.BytesColumn)),
				c(words.BytesColumn(others)), c(written), c(words.Escape(strings.TrimPrefix(l.Region, "/dev/shm/"))),
			}})
		}
	}
	g.print(p, true)
	p.newline()
	for _, l := range list {
		if l.Blocked != "" {
			reason := l.Blocked
			if !strings.HasPrefix(reason, l.Region) {
				reason = l.Region + ": " + reason
			}
			p.line(" it stays: "+words.Escape(reason), warn)
		}
	}
	return p.buf
}
