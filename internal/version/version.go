// Package version holds the release that was built. All programs show it;
// nothing depends on what it says.
package version

import (
	"runtime"
	"runtime/debug"
)

// Version is set by the linker (see the Makefile).
var Version = "0.1.0-dev"

// Revision is the commit that it was built from, or "".
func Revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return ""
}

// Long is the version with what it was built from and by.
func Long() string {
	revision, dirty := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value[:min(len(s.Value), 12)] + ", "
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "changed since "
			}
		}
	}
	return Version + " (" + dirty + revision + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
