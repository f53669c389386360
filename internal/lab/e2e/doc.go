// Package e2e holds no code, only tests: the real binaries on simulated
// hosts. Each test makes a host, lets something happen to it, and looks at
// what a user would see: output, state, exit code.
package e2e
