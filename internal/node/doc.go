// Package node is ttmond, the daemon of a node: the allocation server that
// instrumented programs report to, the collector in the background, the API that
// ttmon and ttmon-server ask, and how a new process takes the place of a running
// one without losing a byte.
//
// cmd/ttmond has its flags. What is tested here needs no process; the daemon as a
// whole, its takeovers and its attackers are tested beside the program, in
// cmd/ttmond.
package node
