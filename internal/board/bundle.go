package board

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Bundle is the version of a firmware bundle.
type Bundle struct {
	Major, Minor, Patch uint8
	RC                  uint8 // release candidate; 0 is the release itself
}

// firstOldMajor begins the numbers that were given out before 1.0: 80.x to
// 255.x are older than everything else.
const firstOldMajor = 80

// ParseBundle reads "19.5.0.0" as the driver prints it. All zeros means that
// the firmware does not say, and is not ok.
func ParseBundle(s string) (b Bundle, ok bool) {
	var n [4]uint8
	rest, more := s, true
	for i := range n {
		var digits string
		digits, rest, more = strings.Cut(rest, ".")
		v, err := strconv.ParseUint(digits, 10, 8)
		if err != nil {
			return Bundle{}, false
		}
		n[i] = uint8(v)
	}
	return Bundle{n[0], n[1], n[2], n[3]}, !more && n != [4]uint8{}
}

// String is the version as the driver prints it.
func (b Bundle) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", b.Major, b.Minor, b.Patch, b.RC)
}

// Compare orders bundles by age: candidates before their release, majors of
// 80 and more before everything.
func (b Bundle) Compare(c Bundle) int {
	return cmp.Or(
		cmp.Compare(b.age(), c.age()),
		cmp.Compare(b.Minor, c.Minor),
		cmp.Compare(b.Patch, c.Patch),
		cmp.Compare(b.RC-1, c.RC-1), // 0 wraps around: the release is the last one
	)
}

// Has reports whether the bundle is of the series major.minor or newer. A
// candidate has what its release has.
func (b Bundle) Has(major, minor uint8) bool {
	b.Patch, b.RC = 0, 0
	return b.Compare(Bundle{Major: major, Minor: minor}) >= 0
}

// age orders majors: those of the old numbering come before 0.
func (b Bundle) age() int {
	if b.Major >= firstOldMajor {
		return int(b.Major) - 256
	}
	return int(b.Major)
}
