// Package runreport makes the account of one `ttmon run` out of the ledgers of its
// processes: a runs.Run, as ttmon runs has it, with what only ledgers know: exact
// peaks, who held them, and what was left behind.
//
// Its place in the flow: package run feeds it the ledgers that source/track finds while
// the program runs; where there is none the run is that of runs/keep, out of snapshots.
// view/runtext and the files of --json, --junit, --pprof and --flame show the Report.
package runreport
