package collect

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// ledgerTime is a moment of the ledgers here.
func ledgerTime(second int) time.Time {
	return time.Date(2026, 11, 15, 12, 0, second, 0, time.UTC)
}

// exitedWith is a process whose ledger has these lists of DRAM, on chips 11 and 12 of
// device 0.
func exitedWith(pid int, lists ...ledgerfile.List) track.Exited {
	l := &ledgerfile.Ledger{Comm: "short", Started: ledgerTime(0), Chips: []ledgerfile.Chip{{ID: 11}, {ID: 12}}, Lists: []ledgerfile.List{{}}}
	for _, x := range lists {
		x.Pool, x.Banks, x.State, x.Total.Blocks = ledgerfile.DRAM, 8, ledgerfile.Closed, 1
		l.Lists = append(l.Lists, x)
	}
	return track.Exited{ID: model.ProcessID{PID: pid, StartTicks: 1}, UID: 1000, Ledger: l}
}

// listHeld is a list that held so much in each bank, from one second to another.
func listHeld(bytes uint64, from, to int, chips ...int) ledgerfile.List {
	return ledgerfile.List{Peak: ledgerfile.Sum{Bytes: bytes, Blocks: 1}, Made: ledgerTime(from), PeakTime: ledgerTime(from), Closed: ledgerTime(to), Chips: chips}
}

func boardWithChips() *model.Snapshot {
	return &model.Snapshot{Time: ledgerTime(30), Devices: []model.Device{{Index: 0, Chips: []model.Chip{{ID: model.Value[uint64](11)}, {ID: model.Value[uint64](12)}}}}}
}

// The peaks of a ledger are exact, on chips, devices and all together, unless lists
// were there at the same time, or events are missing.
func TestAccount(t *testing.T) {
	lost := exitedWith(1, listHeld(1, 1, 2, 0))
	lost.Ledger.Lost = 1
	late := exitedWith(1, listHeld(1, 1, 2, 0))
	late.Ledger.Flags = ledgerfile.Late
	unsure := exitedWith(1, listHeld(1, 1, 2, 0))
	unsure.Ledger.Unknown = 1
	nowhere := exitedWith(1, listHeld(1, 1, 2, 0), listHeld(5, 1, 2))
	for name, c := range map[string]struct {
		exited track.Exited
		want   map[string]string // by place
	}{
		"one chip":            {exitedWith(1, listHeld(1, 1, 2, 0)), map[string]string{"-2 0": "8 exact", "0 0": "8 exact", "0 11": "8 exact"}},
		"a mesh":              {exitedWith(1, listHeld(1, 1, 2, 0, 1)), map[string]string{"-2 0": "16 exact", "0 0": "16 exact", "0 11": "8 exact", "0 12": "8 exact"}},
		"one after the other": {exitedWith(1, listHeld(1, 1, 2, 0), listHeld(3, 2, 4, 0)), map[string]string{"-2 0": "24 exact", "0 0": "24 exact", "0 11": "24 exact"}},
		"two at once":         {exitedWith(1, listHeld(1, 1, 3, 0), listHeld(3, 2, 4, 1)), map[string]string{"-2 0": "24 at_least", "0 0": "24 at_least", "0 11": "8 exact", "0 12": "24 exact"}},
		"lost events":         {lost, map[string]string{"-2 0": "8 at_least", "0 0": "8 at_least", "0 11": "8 at_least"}},
		"began late":          {late, map[string]string{"-2 0": "8 at_least", "0 0": "8 at_least", "0 11": "8 at_least"}},
		"contradictions":      {unsure, map[string]string{"-2 0": "8 unsure", "0 0": "8 unsure", "0 11": "8 unsure"}},
		"on a chip unknown":   {nowhere, map[string]string{"-2 0": "40 at_least", "0 0": "8 at_least", "0 11": "8 at_least"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, p := range accountOf(boardWithChips(), &c.exited).Peaks {
				n, bound, _ := p.Bytes.Best()
				got[strconv.Itoa(p.Device)+" "+strconv.FormatUint(p.ChipID, 10)] = strconv.FormatUint(n, 10) + " " + bound.String()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A process that no snapshot saw has an exit of its own; those that were not seen leave
// room for others, and chips of other hosts make none.
func TestExitsOfLedgers(t *testing.T) {
	e := exits{}
	elsewhere := exitedWith(500, listHeld(1, 1, 2, 0))
	elsewhere.Ledger.Chips[0].ID = 99
	nothing := exitedWith(501)
	list := []track.Exited{elsewhere, nothing}
	for pid := range 2 * maxExits {
		list = append(list, exitedWith(1<<22+pid, listHeld(1, 1, 2, 0)))
	}
	s := boardWithChips()
	s.Processes = []model.Process{{PID: 1<<22 - 1, StartTicks: 1, State: model.Running, Devices: []model.DeviceUse{{}}}}
	e.add(s, nil)
	s = boardWithChips()
	e.add(s, append(list, exitedWith(1<<22-1, listHeld(1, 1, 2, 0))))
	if len(s.Exits) != maxExits/2 || s.Exits[0].ID.PID != 1<<22-1 || s.Exits[0].Account == nil {
		t.Fatalf("%d exits: %+v", len(s.Exits), s.Exits)
	}
	x := s.Exits[1]
	if x.ID.PID != 1<<22 || x.Alive || x.Account.UID != 1000 || x.Account.Name != "short" || !x.Account.Start.Equal(ledgerTime(0)) || !x.Account.Last.Equal(ledgerTime(2)) {
		t.Errorf("%+v", x)
	}
}
