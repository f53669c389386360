package e2e

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestFaultsAreShown plays faults of a device and of the driver beside a ttmond
// and a ttmon-server: the row of the device says what is wrong with it, ttmon check
// fails, both stop when it is over, and the log has both moments.
func TestFaultsAreShown(t *testing.T) {
	const bus = "0000:42:00.0"
	for name, c := range map[string]struct {
		begin, end [][]string
		row        string // in smi, of the board
		check      int    // exit code while it lasts
		events     [2]string
	}{
		"throttled": {
			begin: [][]string{{"run", "name=job,devices=1,load=1"}, {"ambient", "1", "75"}, {"advance", "2m"}},
			end:   [][]string{{"ambient", "1", "20"}, {"advance", "5m"}},
			row:   "throttled", check: 1, events: [2]string{"device 1 is throttled by heat", "device 1 is no longer throttled"},
		},
		"unplugged": {
			begin: [][]string{{"unplug", "1"}},
			end:   [][]string{{"plug", bus, "index=1"}},
			row:   "lost", check: 2, events: [2]string{"device 1 is lost", "device 1 is ok again"},
		},
		"no driver": {
			begin: [][]string{{"driver", "none"}},
			end:   [][]string{{"driver", "2.10.0"}},
			row:   "lost", check: 2, events: [2]string{"device 1 is lost", "device 1 is ok again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: "n150,p150a"})
			d := startDaemon(t, h, "--no-uprobe")
			d.startServer()
			ask := func(args ...string) result { return runIn(t, h, append(args, "--daemon", d.api)...) }
			row := func() string {
				for line := range strings.Lines(ask("smi").out) {
					if strings.Contains(line, " p150a ") {
						return line
					}
				}
				return ""
			}
			play := func(list [][]string) {
				for _, args := range list {
					ctl(t, h, args...)
				}
			}
			await(t, "the board to be well", func() bool { return strings.Contains(row(), " ok ") })
			play(c.begin)
			await(t, "its row says "+c.row, func() bool { return strings.Contains(row(), c.row) })
			if got := ask("check"); got.code != c.check {
				t.Errorf("ttmon check exits with %d, want %d: %s", got.code, c.check, got.out)
			}
			play(c.end)
			await(t, "the board to be well again", func() bool { return strings.Contains(row(), " ok ") })
			await(t, "both moments are in the log", func() bool {
				log := ask("events").out
				from := strings.Index(log, c.events[0])
				return from >= 0 && strings.Contains(log[from:], c.events[1])
			})
		})
	}
}
