// Package mem is ttmon mem: the memory of each chip by pool, who holds it, and
// how it changed, as screens on a terminal and as plain text for logs. ttmon
// top shows the same screens under the key m.
//
// It stands at the end of the data flow, beside top: it takes in snapshots and
// keys, draws cells, and returns what it wants done as effects.
package mem
