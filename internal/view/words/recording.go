package words

import "fmt"

// NoRoom is the sentence about a request for device memory that found none.
func NoRoom(pid int, name, pool string, bankBytes uint64) string {
	return Escape(fmt.Sprintf("process %d (%s) asked for %s in each bank of %s, and there was no room", pid, name, Bytes(bankBytes), pool))
}
