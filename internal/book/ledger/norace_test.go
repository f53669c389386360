//go:build !race

package ledger

// raceDetector reports whether everything takes ten times as long.
const raceDetector = false
