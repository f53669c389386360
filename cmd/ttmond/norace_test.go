//go:build !race

package main

// raceDetector: the program is built like its tests.
const raceDetector = false

// fewer divides what attackers have in masses.
const fewer = 1

// arenaBlocks is how many blocks of watched programs are kept; 0: as many as fit
// into the memory.
const arenaBlocks = 0
