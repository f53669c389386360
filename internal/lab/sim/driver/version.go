// Package driver simulates tt-kmd: which files it makes for which chip in
// which version, what they print, and how they behave when a chip is reset,
// hangs, dies or is pulled.
//
// It turns chips (package chip) into a tree of files (package tree); sim puts
// that tree where a real host has it, and control calls the methods that
// break things.
package driver

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a driver version. The zero Version stands for "never" in tables.
type Version struct {
	Major, Minor, Patch int
	Suffix              string // "-rc1", with the dash
	parts               int    // 1.34 is printed with two parts
}

// Versions that can be simulated.
var (
	Oldest  = ver(1, 34, 0)
	Default = ver(2, 10, 0)
	newest  = ver(2, 11, 0)
)

func ver(major, minor, patch int) Version {
	return Version{Major: major, Minor: minor, Patch: patch, parts: 3}
}

// ParseVersion reads "2.10.1-pre" or "1.34".
func ParseVersion(s string) (Version, error) {
	num, suffix, dashed := strings.Cut(s, "-")
	v := Version{}
	if dashed {
		v.Suffix = "-" + suffix
	}
	parts := strings.Split(num, ".")
	v.parts = len(parts)
	ok := v.parts == 2 || v.parts == 3
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || !ok {
			return v, fmt.Errorf("%q is not a driver version such as 2.10.0, 2.10.1-pre or 1.34", s)
		}
		*[]*int{&v.Major, &v.Minor, &v.Patch}[i] = n
	}
	if !v.AtLeast(Oldest) || (v.Major > newest.Major || v.Major == newest.Major && v.Minor > newest.Minor) {
		return v, fmt.Errorf("driver %s cannot be simulated: 1.34 to 2.11.0 can", s)
	}
	return v, nil
}

// AtLeast reports whether v is w or later. A suffix makes no difference.
func (v Version) AtLeast(w Version) bool {
	if v.Major != w.Major {
		return v.Major > w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor > w.Minor
	}
	return v.Patch >= w.Patch
}

// has reports whether something that came with w is in v; zero never came.
func (v Version) has(w Version) bool { return w != Version{} && v.AtLeast(w) }

// String is the version as the module prints it.
func (v Version) String() string {
	if v.parts == 2 && v.Patch == 0 {
		return fmt.Sprintf("%d.%d%s", v.Major, v.Minor, v.Suffix)
	}
	return fmt.Sprintf("%d.%d.%d%s", v.Major, v.Minor, v.Patch, v.Suffix)
}

// The versions that changed what is simulated here.
var (
	always = Oldest
	v200   = ver(2, 0, 0)
	v210   = ver(2, 1, 0)
	v220   = ver(2, 2, 0)
	v230   = ver(2, 3, 0)
	v250   = ver(2, 5, 0)
	v260   = ver(2, 6, 0)
	v270   = ver(2, 7, 0)
	v280   = ver(2, 8, 0)
	v290   = ver(2, 9, 0)
	v2110  = ver(2, 11, 0)
	never  = Version{}
)
