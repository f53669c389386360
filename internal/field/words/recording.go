package words

import (
	"fmt"
	"time"
)

// NoRoom is the sentence about a request for device memory that found none.
func NoRoom(pid int, name, pool string, bankBytes uint64) string {
	return Escape(fmt.Sprintf("process %d (%s) asked for %s in each bank of %s, and there was no room", pid, name, Bytes(bankBytes), pool))
}

// BlocksCompared is the sentence about a recording in which what programs hold
// is compared from time to time.
func BlocksCompared(why error) string {
	return Escape(fmt.Sprintf("what programs hold is compared once a second, and what came and went in between is not recorded: ttmond does not tell every allocation (%v)", why))
}

// RecordingBehind is the sentence about a recording that ended before ttmond had
// told all: up to a time, or nothing at all where that is zero.
func RecordingBehind(upTo time.Time) string {
	if upTo.IsZero() {
		return "ttmond told no allocation before the recording ended: what programs held is missing"
	}
	return "ttmond had not told the last allocations when the recording ended: what happened after " + upTo.Format("15:04:05.000") + " may be missing"
}

// ProgramsNotRecorded is the sentence about a recording without the programs that ran
// on chips, though they were asked for.
func ProgramsNotRecorded(why error) string {
	return Escape(fmt.Sprintf("programs of chips are not recorded: only a ttmond that watches processes through the kernel sends them (%v)", why))
}

// ProgramsBehind is the sentence about a recording that ended before ttmond had sent
// all programs: up to a time, or none at all where that is zero.
func ProgramsBehind(upTo time.Time) string {
	if upTo.IsZero() {
		return "ttmond sent no programs before the recording ended"
	}
	return "ttmond had not sent the last programs when the recording ended: those after " + upTo.Format("15:04:05.000") + " may be missing"
}

// RecordingGap is the sentence about a part of a recording that cannot be read.
const RecordingGap = "a part of the recording is damaged: nothing is known from here up to the next part that is whole"
