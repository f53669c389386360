package uprobe

import "testing"

func TestGetter(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func([]byte) (field, bool)
		code string
		want field
		ok   bool
	}{
		{"in the object", getterAMD64, "\x48\x8b\x47\x58\xc3", field{offset: 0x58}, true},
		{"at its start", getterAMD64, "\x48\x8b\x07\xc3", field{}, true},
		{"far behind", getterAMD64, "\x48\x8b\x87\x50\x01\x00\x00\xc3", field{offset: 0x150}, true},
		{"behind a pointer", getterAMD64, "\x48\x8b\x47\x10\x48\x8b\x40\x08\xc3", field{pointer: 0x10, offset: 8}, true},
		{"behind a landing pad", getterAMD64, "\xf3\x0f\x1e\xfa\x48\x8b\x47\x10\x48\x8b\x00\xc3", field{pointer: 0x10}, true},
		{"behind a pointer at its start", getterAMD64, "\x48\x8b\x07\x48\x8b\x40\x08\xc3", field{offset: 8}, false},
		{"before the object", getterAMD64, "\x48\x8b\x47\x80\xc3", field{}, false},
		{"very far", getterAMD64, "\x48\x8b\x87\x00\x00\x01\x00\xc3", field{}, false},
		{"of 32 bits", getterAMD64, "\x8b\x47\x58\xc3", field{}, false},
		{"of the second argument", getterAMD64, "\x48\x8b\x46\x58\xc3", field{}, false},
		{"into another register", getterAMD64, "\x48\x8b\x4f\x58\xc3", field{}, false},
		{"with more behind it", getterAMD64, "\x48\x8b\x47\x58\x48\xff\xc0\xc3", field{pointer: 0x58}, false},
		{"cut off", getterAMD64, "\x48\x8b\x47", field{}, false},
		{"cut off before its end", getterAMD64, "\x48\x8b\x47\x58", field{}, false},
		{"nothing", getterAMD64, "", field{}, false},
		{"arm: in the object", getterARM64, "\x00\x2c\x40\xf9\xc0\x03\x5f\xd6", field{offset: 0x58}, true},
		{"arm: behind a pointer", getterARM64, "\x08\x08\x40\xf9\x00\x05\x40\xf9\xc0\x03\x5f\xd6", field{pointer: 0x10, offset: 8}, true},
		{"arm: behind a landing pad", getterARM64, "\x5f\x24\x03\xd5\x00\x2c\x40\xf9\xc0\x03\x5f\xd6", field{offset: 0x58}, true},
		{"arm: of another register", getterARM64, "\x20\x2c\x40\xf9\xc0\x03\x5f\xd6", field{}, false},
		{"arm: no return", getterARM64, "\x00\x2c\x40\xf9\x00\x2c\x40\xf9", field{}, false},
		{"arm: nothing", getterARM64, "\x00", field{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := c.of([]byte(c.code))
			if ok != c.ok || ok && got != c.want {
				t.Errorf("%+v, %v", got, ok)
			}
		})
	}
}

func FuzzGetter(f *testing.F) {
	f.Add([]byte("\x48\x8b\x47\x10\x48\x8b\x40\x08\xc3"))
	f.Add([]byte("\x08\x08\x40\xf9\x00\x05\x40\xf9\xc0\x03\x5f\xd6"))
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, of := range []func([]byte) (field, bool){getterAMD64, getterARM64} {
			if at, ok := of(code); ok && (at.pointer >= 1<<15 || at.offset >= 1<<15) {
				t.Errorf("%+v", at)
			}
		}
	})
}
