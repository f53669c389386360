// Package runtext prints what a program took of the chips' memory: the summary
// at the end of a `ttmon run` and its one-line meter. It is a view: it reads a
// runreport.Report and decides nothing.
package runtext
