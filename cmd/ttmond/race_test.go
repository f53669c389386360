//go:build race

package main

// raceDetector: the program is built like its tests.
const raceDetector = true

// fewer divides what attackers have in masses: each costs ten times as much.
const fewer = 8

// arenaBlocks is how many blocks of watched programs are kept: so few that
// attackers with fewer blocks have more than their share of them.
const arenaBlocks = 32 << 10
