// Package runreport makes the account of one `ttmon run`: what a program and
// its children took of each chip's memory at most, who held it then, and what
// they left behind.
//
// Its place in the flow: cmd/ttmon feeds it the ledgers that source/track finds
// while the program runs, and figures sampled from snapshots where there is no
// ledger; view/runtext and the files of --json, --junit, --pprof and --flame
// show the Report.
package runreport
