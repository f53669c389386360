// Package model holds what ttmon knows about a host: its boards, chips,
// processes and the memory they hold, at one moment.
//
// It stands in the middle of the data flow: sources fill it in, collect
// publishes it, views only read it. It imports nothing but the standard
// library, so that everything else may import it.
package model
