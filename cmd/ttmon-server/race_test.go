//go:build race

package main

// raceDetector: the program is built like its tests.
const raceDetector = true

// fewer divides what attackers have in masses: each costs ten times as much.
const fewer = 8
