// Package mem is the memory of each chip by pool, who holds it, and how it changed: a
// page of ttmon top, with which ttmon mem begins, and plain text for logs.
//
// It stands at the end of the data flow, inside top: it takes in snapshots and keys,
// draws cells, and returns what it wants done as effects.
package mem
