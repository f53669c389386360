package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
)

func TestSelectionKeepsWhatBelongs(t *testing.T) {
	s := sample.Troubles()
	part, err := selected(t, " 3 ,5").From(s)
	if err != nil {
		t.Fatal(err)
	}
	var devices, pids []int
	for _, d := range part.Devices {
		devices = append(devices, d.Index)
	}
	for _, p := range part.Processes {
		pids = append(pids, p.PID)
		for _, u := range p.Devices {
			if u.Device != 3 && u.Device != 5 {
				t.Errorf("process %d still has device %d", p.PID, u.Device)
			}
		}
	}
	if diff := cmp.Diff([]int{3, 5}, devices); diff != "" {
		t.Error(diff)
	}
	if n := len(part.Devices) + part.Others; n != len(s.Devices) {
		t.Errorf("the host has %d devices, want %d", n, len(s.Devices))
	}
	if diff := cmp.Diff([]int{190001, 190012, 190013, 190014}, pids); diff != "" {
		t.Error(diff)
	}
	if len(part.StaleSlots) != 1 || len(part.Unmatched) != 0 {
		t.Errorf("%d ghosts, %d unmatched chips", len(part.StaleSlots), len(part.Unmatched))
	}
	if diff := cmp.Diff(sample.Troubles(), s); diff != "" {
		t.Errorf("the snapshot itself was changed: %s", diff)
	}
}

func TestSelectionBySharedSerial(t *testing.T) {
	s := sample.Galaxy()
	for i := range s.Devices {
		s.Devices[i].Serial = model.Value("0000040211900001")
	}
	part, err := selected(t, "0000040211900001").From(s)
	if err != nil || len(part.Devices) != 32 {
		t.Errorf("%d devices, %v", len(part.Devices), err)
	}
}

func TestSelectionOfWhatIsGone(t *testing.T) {
	s := sample.Four()
	if got := selected(t, "1,17").Present(s); len(got.Devices) != 1 || got.Devices[0].Index != 1 {
		t.Errorf("%d devices", len(got.Devices))
	}
	if _, err := selected(t, "1,17").From(s); err == nil {
		t.Error("a device that is not there is no error")
	}
}

func selected(t *testing.T, given ...string) Selection {
	t.Helper()
	list, err := Parse(given)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestParseSelection(t *testing.T) {
	if list := selected(t); list != nil {
		t.Errorf("without -i: %q", list)
	}
	if list := selected(t, "0", " 41:00.0, 3"); len(list) != 3 || list[1] != "41:00.0" {
		t.Errorf("given twice: %q", list)
	}
	for _, empty := range []string{"", " , "} {
		if list, err := Parse([]string{empty}); err == nil {
			t.Errorf("-i %q chose %q", empty, list)
		}
	}
}
