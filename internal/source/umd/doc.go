// Package umd reads what Tenstorrent's user-mode driver (UMD) leaves on a host:
// lock files, which name the process that has a chip in use, and cluster
// descriptors, which say where each chip is.
//
// It is a poll source: collect reads the locks in every sweep, and passes the
// descriptors to board.Resolver. It reads through hostfs and opens nothing for
// writing: opening a lock file for writing would be the first step to taking
// it.
package umd
