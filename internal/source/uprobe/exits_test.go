package uprobe

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// TestExits: instructions with which functions end, found for certain or not at all.
func TestExits(t *testing.T) {
	const (
		prologue = "4157 4156 53 4883ec10"
		epilogue = "4883c410 5b 415e 415f"
	)
	for _, c := range []struct {
		name, code      string
		returns, leaves []uint64
		ok              bool
	}{
		{"one return", prologue + "90" + epilogue + "c3", []uint64{14}, nil, true},
		{"two returns", prologue + epilogue + "c3" + epilogue + "c3", []uint64{13, 23}, nil, true},
		{"endbr64 and a frame pointer", "f30f1efa 55 4889e5 4157 53 90 5b 415f 5d c3", []uint64{12}, nil, true},
		{"a jump to another function", prologue + epilogue + "c3" + epilogue + "ffe0", []uint64{13}, []uint64{23}, true},
		// mov %rax,%rbx; call unlock; mov %rbx,%rdi; call resume
		{"an exception passes", prologue + epilogue + "c3" + "4889c3 e8 00000100 4889df e8 f0ff0000", []uint64{13}, []uint64{30}, true},
		{"it is resumed in two places", prologue + epilogue + "c3" + "e8 05000100 e8 00000100", []uint64{13}, []uint64{19, 24}, true},
		{"the stack is aligned", "4157 4156 53 50 4883c408 5b 415e 415f c3", []uint64{10}, nil, true},
		{"nothing is saved", "4889f8 c3", nil, nil, false},
		{"one register is saved", "53 90 5b c3", nil, nil, false},
		{"in the middle of an instruction", "4154 55 90 415d 415c c3", nil, nil, false},
		{"it never returns", prologue + "ebfe", nil, nil, false},
		{"empty", "", nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, err := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			got, ok := exitsAMD64(code)
			if ok != c.ok || !slices.Equal(got.returns, c.returns) || !slices.Equal(got.leaves, c.leaves) {
				t.Errorf("%v %+v", ok, got)
			}
		})
	}
}

// TestExitsARM64 is the same where every instruction has four bytes.
func TestExitsARM64(t *testing.T) {
	for _, c := range []struct {
		name, code      string
		returns, leaves []uint64
		ok              bool
	}{
		{"one return", "fd7bbfa9 fd7bc1a8 c0035fd6", []uint64{8}, nil, true},
		// bl +16; ret; bl +8
		{"an exception is resumed in two places", "04000094 c0035fd6 02000094", []uint64{4}, []uint64{0, 8}, true},
		{"it never returns", "00000014", nil, nil, false},
		{"empty", "", nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, err := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			got, ok := exitsARM64(code)
			if ok != c.ok || !slices.Equal(got.returns, c.returns) || !slices.Equal(got.leaves, c.leaves) {
				t.Errorf("%v %+v", ok, got)
			}
		})
	}
}

func FuzzExits(f *testing.F) {
	f.Add([]byte{0x41, 0x57, 0x53, 0x5b, 0x41, 0x5f, 0xc3, 0xe8, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, find := range []func([]byte) (exits, bool){exitsAMD64, exitsARM64} {
			e, ok := find(code)
			if ok != (len(e.returns) > 0) {
				t.Errorf("%v: %+v", ok, e)
			}
			for _, at := range append(e.returns, e.leaves...) {
				if at >= uint64(len(code)) {
					t.Errorf("%d of %d bytes", at, len(code))
				}
			}
		}
	})
}
