package programs

import (
	"fmt"
	"os"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// TimeoutVar is how long ttmon waits for what does not answer. On a busy
// machine the usual 700 ms may go by before a simulated chip, which is a
// process like others, has come to answer.
const TimeoutVar = "TTMON_TIMEOUT"

// Main enters a host of the tests' own and builds the commands, as they are
// released. It runs the tests by run, which gets the directory with the
// commands, and ends the program. It is for a TestMain.
func Main(o hermetic.Options, run func(bin string) (code int)) {
	hermetic.Enter(o)
	bin, err := Build(false, "ttmon", "ttmon-sim", "ttmond", "ttmon-server")
	if err == nil {
		err = os.Setenv(TimeoutVar, "20s")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := run(bin)
	os.RemoveAll(bin)
	os.Exit(code)
}
