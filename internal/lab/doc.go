// Package lab is the room of what never ships in ttmon, ttmond or ttmon-server: the
// simulated host, tests with real parts, and laws about the tree.
package lab
