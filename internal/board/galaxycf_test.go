package board

import "testing"

// TestGalaxyCF: the board that the vendor calls Galaxy CF is known to UMD and tt-smi.
func TestGalaxyCF(t *testing.T) {
	b, ok := ByCode(0x202)
	if !ok || b.Card != "galaxy-blackhole-cf" || b.UMDType != "ubb_blackhole_cf" || b.Official != "tt-galaxy-bh" || !b.Galaxy() {
		t.Errorf("%+v", b)
	}
	// Its chips have ids as those of the other Galaxy have: by the ASIC alone.
	if e := (Endpoint{Card: b.Card, Arch: b.Arch, ASICID: 7}); e.blind() {
		t.Error("an ASIC id is not enough")
	}
}
