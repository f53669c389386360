// Package umd reads what Tenstorrent's user-mode driver (UMD) leaves on a
// host: lock files, which tell which process has a chip in use, and cluster
// descriptors, which tell where each chip sits.
//
// It is one of the polled sources: collect asks it for the locks on every
// sweep, and hands what descriptors say to board.Resolver. It reads through
// hostfs and opens nothing for writing: opening a lock file for writing would
// be the first step to taking it.
package umd
