package uprobe

import (
	"fmt"
	"testing"
)

// TestStub: stubs as the linkers GNU ld and mold make them, for both machines.
func TestStub(t *testing.T) {
	for _, c := range []struct {
		stub    func([]byte, uint64) (uint64, bool)
		code    string
		address uint64
		slot    uint64 // 0: it is no stub
	}{
		{stubAMD64, "\xff\x25\xea\x2f\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff", 0x1010, 0x4000},
		{stubAMD64, "\xf3\x0f\x1e\xfa\xf2\xff\x25\xe5\x2f\x00\x00\x0f\x1f\x44\x00\x00", 0x1010, 0x4000},
		{stubAMD64, "\x41\xbb\x3a\x06\x00\x00\xff\x25\x6c\x0f\xf9\x00\xcc\xcc\xcc\xcc", 0x786fe0, 0x1717f58},
		{stubAMD64, "\xf3\x0f\x1e\xfa\x41\xbb\x3a\x06\x00\x00\xff\x25\x68\x0f\xf9\x00", 0x786fe0, 0x1717f58},
		{stubAMD64, "\xff\x35\xea\x2f\x00\x00\xff\x25\xec\x2f\x00\x00\x0f\x1f\x40\x00", 0x1000, 0},
		{stubARM64, "\x10\x01\x00\x90\x11\x02\x40\xf9\x10\x02\x00\x91\x20\x02\x1f\xd6", 0x2a0, 0x20000},
		{stubARM64, "\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\x10\x02\x00\x91\x20\x02\x1f\xd6", 0x2a0, 0},
	} {
		t.Run(fmt.Sprintf("% x", c.code), func(t *testing.T) {
			if slot, ok := c.stub([]byte(c.code), c.address); slot != c.slot || ok != (c.slot > 0) {
				t.Errorf("%#x %v, want %#x", slot, ok, c.slot)
			}
		})
	}
}
