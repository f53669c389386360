// Package version holds the release that was built. All programs show it;
// nothing depends on what it says.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker: see tools/version.
var (
	Version = "0.1.0-dev"
	Commit  = "" // 12 hex digits; "" where it was not built from a checkout
	Date    = "" // of the commit, 2026-11-15
)

// Revision is the commit that it was built from, or "". A plain go build
// records it, too.
func Revision() string {
	if Commit != "" {
		return Commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return ""
}

// Long is the version with the commit, its date, and the Go that built it.
func Long() string {
	about := make([]string, 0, 3)
	if r := Revision(); r != "" {
		about = append(about, "commit "+r)
	}
	if Date != "" {
		about = append(about, Date)
	}
	about = append(about, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
	return Version + " (" + strings.Join(about, ", ") + ")"
}
