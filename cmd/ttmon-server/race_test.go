//go:build race

package main

// raceDetector: the program is built like its tests.
const raceDetector = true
