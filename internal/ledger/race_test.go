//go:build race

package ledger

// raceDetector tells whether everything takes ten times as long.
const raceDetector = true
