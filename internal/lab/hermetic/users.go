package hermetic

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// otherUser is the highest id that tests switch to.
const otherUser = 65534

// NeedOtherUsers skips a test that runs programs as several users where it
// cannot: as an ordinary user, even where a namespace makes it root, and as
// root of a container that has only one user.
func NeedOtherUsers(t testing.TB) {
	t.Helper()
	if can, err := OtherUsers(); err != nil {
		t.Fatal(err)
	} else if !can {
		t.Skipf("it runs programs as several users: that needs root, and user %d", otherUser)
	}
}

// OtherUsers reports whether this process can run programs as several users.
func OtherUsers() (bool, error) {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return os.Geteuid() == 0 && mapped(string(ids), otherUser), err
}

// mapped reports whether a uid_map has a user.
func mapped(ids string, uid uint64) bool {
	for line := range strings.Lines(ids) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(fields[0], 10, 32)
		n, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && first <= uid && uid < first+n {
			return true
		}
	}
	return false
}
