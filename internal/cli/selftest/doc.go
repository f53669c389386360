// Package selftest compares what ttmon shows with a second witness: the driver's
// files read by another program, what the kernel says about processes, the
// accounting regions decoded again, Tenstorrent's own tt-smi, and a ttnn program
// that knows what it holds. Each comparison is a Row with a Verdict; a Report has
// them all.
//
// It changes nothing on the host. It opens a device only through a program that
// the user named and agreed to, and never one that is in use unless told to.
package selftest
