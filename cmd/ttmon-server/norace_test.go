//go:build !race

package main

// raceDetector: the program is built like its tests.
const raceDetector = false

// fewer divides what attackers have in masses.
const fewer = 1
