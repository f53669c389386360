// Package collect runs the sources and joins what they say into snapshots.
//
// It is the middle of the data flow: below it are the sources, each knowing
// one kind of file; above it are views and the daemon, which see nothing but
// model.Snapshot. A Collector belongs to one caller; the snapshots it makes
// belong to everybody and are never changed.
package collect
