package daemon

import "testing"

// Only what the file still has may be given back: never what was written to,
// nor another's file.
func TestConstantPages(t *testing.T) {
	const exe = "/usr/bin/ttmond"
	for line, want := range map[string]bool{
		"00400000-01a00000 r-xp 00000000 fe:00 123                        /usr/bin/ttmond":           true,
		"01a00000-02c00000 r--p 01600000 fe:00 123                        /usr/bin/ttmond":           true,
		"02c00000-02d00000 rw-p 02800000 fe:00 123                        /usr/bin/ttmond":           false,
		"7f0000000000-7f0000100000 r-xs 00000000 fe:00 9                  /usr/bin/ttmond":           false,
		"7f0000000000-7f0000100000 r--p 00000000 fe:00 9                  /var/lib/ttmon/chunks":     false,
		"00400000-01a00000 r-xp 00000000 fe:00 123                        /usr/bin/ttmond (deleted)": false,
		"c000000000-c000400000 rw-p 00000000 00:00 0":                                                false,
		"nonsense-nonsense r-xp 0 0 0 /usr/bin/ttmond":                                               false,
		"": false,
	} {
		t.Run(line, func(t *testing.T) {
			if _, _, ok := constantPages(line, exe); ok != want {
				t.Errorf("%q: %v", line, ok)
			}
		})
	}
	if from, to, _ := constantPages("00400000-01a00000 r-xp 00000000 fe:00 123 /usr/bin/ttmond", exe); from != 0x400000 || to != 0x1a00000 {
		t.Errorf("%x to %x", from, to)
	}
}
