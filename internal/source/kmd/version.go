package kmd

import (
	"strconv"
	"strings"
)

// Version is a driver release. The suffix (-pre, -rc1) is ignored in
// comparisons: a pre-release counts as its release.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads "2.10.1-pre", "2.9.0" or the two-part "1.34" of old.
func ParseVersion(s string) (v Version, ok bool) {
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return Version{}, false
	}
	for i, dst := range []*int{&v.Major, &v.Minor, &v.Patch}[:len(parts)] {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return Version{}, false
		}
		*dst = int(n)
	}
	return v, true
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	switch {
	case v.Major != w.Major:
		return v.Major < w.Major
	case v.Minor != w.Minor:
		return v.Minor < w.Minor
	default:
		return v.Patch < w.Patch
	}
}

// String is the version as Tenstorrent writes it: two parts up to 1.x.
func (v Version) String() string {
	s := strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor)
	if v.Major >= 2 || v.Patch > 0 {
		s += "." + strconv.Itoa(v.Patch)
	}
	return s
}
