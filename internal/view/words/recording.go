package words

import "fmt"

// NoRoom is the sentence about a request for device memory that found none.
func NoRoom(pid int, name, pool string, bankBytes uint64) string {
	return Escape(fmt.Sprintf("process %d (%s) asked for %s in each bank of %s, and there was no room", pid, name, Bytes(bankBytes), pool))
}

// BlocksCompared is the sentence about a recording in which what programs hold
// is compared from time to time.
func BlocksCompared(why error) string {
	return Escape(fmt.Sprintf("what programs hold is compared once a second, and what came and went in between is not recorded: ttmond does not tell every allocation (%v)", why))
}

// RecordingGap is the sentence about a part of a recording that cannot be read.
const RecordingGap = "a part of the recording is damaged: nothing is known from here up to the next part that is whole"
