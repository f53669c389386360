// Package version holds the release that was built. All programs show it;
// nothing depends on what it says.
package version

// Version is set by the linker (see the Makefile).
var Version = "0.1.0-dev"
