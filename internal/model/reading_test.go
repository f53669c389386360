package model

import "testing"

func TestZeroReadingIsAbsent(t *testing.T) {
	var r Reading[float64]
	if r.Known() || r.Reason() != "absent" {
		t.Errorf("a reading that was not filled in: known %v, reason %q", r.Known(), r.Reason())
	}
}

func TestReading(t *testing.T) {
	if v, ok := Value(0.0).Get(); !ok || v != 0 {
		t.Error("a measured zero is not known")
	}
	m := Missing[int](Denied, "it belongs to root")
	if m.Reason() != "denied: it belongs to root" {
		t.Errorf("reason %q", m.Reason())
	}
	if r := Map(m, func(n int) string { return "made up" }); r.Known() || r.Reason() != m.Reason() {
		t.Errorf("mapping a missing reading gave %+v", r)
	}
	if r := Map(NominalValue(3), func(n int) int { return 2 * n }); r.V != 6 || !r.Nominal {
		t.Errorf("mapping a nominal reading gave %+v", r)
	}
	defer func() {
		if recover() == nil {
			t.Error("a missing reading could be made known")
		}
	}()
	Missing[int](Known, "")
}

func TestStatusWords(t *testing.T) {
	for s := Absent; s <= Pending; s++ {
		back, ok := ParseStatus(s.String())
		if !ok || back != s {
			t.Errorf("%d says %q, which reads as %d", s, s, back)
		}
	}
	if _, ok := ParseStatus("nonsense"); ok {
		t.Error("nonsense is a status")
	}
	if Status(200).String() != "status(200)" {
		t.Errorf("an unknown status says %q", Status(200))
	}
}
