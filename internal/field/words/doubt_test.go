package words_test

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Every kind has a sentence of its own: none falls through to the detail, and
// no two say the same.
func TestEveryDoubtHasASentence(t *testing.T) {
	const detail = "what a kind without a sentence would say"
	seen := map[string]model.DoubtKind{}
	for _, row := range model.DoubtKinds {
		k := row.Kind
		bare, full := words.Doubt(model.Doubt{Kind: k}), words.Doubt(whole(k))
		if bare == "" || full == "" || words.Doubt(model.Doubt{Kind: k, Detail: detail}) == detail {
			t.Errorf("%s has no sentence: %q", k, full)
		}
		if other, twice := seen[full]; twice {
			t.Errorf("%s and %s say the same: %q", k, other, full)
		}
		seen[full] = k
		if words.Escape(full) != full || words.Escape(bare) != bare {
			t.Errorf("%s is not safe for a terminal: %q", k, full)
		}
	}
}

// whole is a doubt of a kind with everything a doubt can have, hostile names.
func whole(k model.DoubtKind) model.Doubt {
	return model.Doubt{
		Kind: k, PID: 4242, PIDs: []int{1, 2}, SlotPID: 7, UID: 1000, Chip: 77, Devices: []int{0, 1}, Region: "/dev/shm/x\x1b",
		Release: "0.81.1\n", Name: "py\x1b", Version: 5, Count: 3, Source: model.FromShm, Basis: model.ByTray, Detail: "why\x1b",
	}
}

func TestDoubt(t *testing.T) {
	for _, c := range []struct {
		d    model.Doubt
		from model.Origin
		want string
	}{
		{
			model.Doubt{Kind: model.OtherThreads, Release: "0.81.1"},
			model.Direct,
			"release 0.81.1 counts what one thread allocates and frees: the figures may be too high or too low; exact figures need ttmond with uprobes, or ttmon run",
		},
		{model.Doubt{Kind: model.ProcessesDenied, Count: 1, UID: 1000}, model.Direct, "1 process may not be looked into; start ttmond, or run as root"},
		{model.Doubt{Kind: model.ProcessesDenied, Count: 2}, model.Direct, "2 processes may not be looked into; that needs CAP_SYS_PTRACE"},
		{
			model.Doubt{Kind: model.ProcessesGuarded, Count: 1},
			model.Direct,
			"1 process may not be looked into, not even by root (a security module, or another user namespace)",
		},
		{model.Doubt{Kind: model.ProcessesHidden, UID: 1000}, model.Daemon, "processes of other users are hidden (hidepid); ttmond would have to run as root"},
		{
			model.Doubt{Kind: model.RegionDenied, UID: 0},
			model.Daemon,
			"the accounting is uid 0's, and only that user and root may read it; ttmond needs root's CAP_DAC_READ_SEARCH for that",
		},
		{
			model.Doubt{Kind: model.SlotUnseen, SlotPID: 7, Name: "py"},
			model.Direct,
			"slot of 7 py: its process cannot be seen from here, dead or in another container: not in the figures",
		},
		{
			model.Doubt{Kind: model.SlotsFull, PID: 9, Count: 2},
			model.Direct,
			"process 9: found no free place in the accounting of the chip, not in the figures (2 places are taken by dead processes); see ttmon mem --stale",
		},
		{model.Doubt{Kind: "moonlight", Detail: "the moon shone\x1b"}, model.Direct, `the moon shone\x1b`},
	} {
		t.Run(fmt.Sprintf("%s from %v, %d", c.d.Kind, c.from, c.d.Count), func(t *testing.T) {
			if got := words.DoubtAndCure(c.d, c.from); got != c.want {
				t.Errorf("%s: %q, want %q", c.d.Kind, got, c.want)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	if got := words.Reasons(model.TrackOK, nil, model.Direct); len(got) != 0 {
		t.Errorf("whole figures have reasons: %q", got)
	}
	if got := words.Reasons(model.TrackPartial, nil, model.Direct); len(got) != 1 {
		t.Errorf("nothing says why figures are partial: %q", got)
	}
	if got := words.Reasons(model.TrackAbsent, []model.Doubt{{Kind: model.NotTTMetal}}, model.Direct); len(got) != 1 {
		t.Errorf("nothing to account for, and still: %q", got)
	}
	explained := []model.Doubt{{Kind: model.NotAttached, PID: 1}, {Kind: model.NotAttached, PID: 1}}
	if got := words.Reasons(model.TrackPartial, explained, model.Direct); len(got) != 1 {
		t.Errorf("one doubt gives %q", got)
	}
}
