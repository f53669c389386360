package truth

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// bin is the directory with the binaries under test, built once.
var bin string

var all = flag.Bool("all", false, "play all scenarios, not only the fast ones, and print the table")

func TestMain(m *testing.M) {
	flag.Parse()
	limit := 40 * time.Minute
	if *all || *composeCount > 0 {
		limit = max(time.Hour, time.Duration(*composeCount)*30*time.Second)
	}
	programs.Main(hermetic.Options{Limit: limit, Parallel: *composeParallel}, func(dir string) int {
		bin = dir
		code := m.Run()
		if *all && os.Getenv(compositionVar) == "" {
			result.print(os.Stdout)
		}
		return code
	})
}

// scenario is something that happens on a host, and what ttmon says then.
type scenario struct {
	name string
	how  how
	play func(*stage)
}

// how a scenario is played.
type how uint8

const (
	fast  how = 1 << iota // go test plays it, too
	alone                 // where no process of another one is in sight
)

// when is h if something holds.
func when(holds bool, h how) how {
	if holds {
		return h
	}
	return 0
}

func TestTruth(t *testing.T) {
	list := scenarios()
	names := map[string]bool{}
	for _, c := range list {
		if names[c.name] {
			t.Errorf("two scenarios are called %q", c.name)
		}
		names[c.name] = true
		if c.how&fast == 0 && !*all {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if c.how&alone == 0 || !*all { // the table is this process's
				t.Parallel()
				if c.how&alone != 0 && !hermetic.Alone(t) {
					return
				}
			}
			c.play(&stage{T: t, name: c.name, alone: c.how&alone != 0})
		})
	}
}

// scenarios are all of them.
func scenarios() (list []scenario) {
	list = append(list, ttnnScenarios()...)
	list = append(list, placeScenarios()...)
	list = append(list, slotScenarios()...)
	list = append(list, rightsScenarios()...)
	list = append(list, watchedScenarios()...)
	list = append(list, mixedScenarios()...)
	list = append(list, awayScenarios()...)
	list = append(list, workScenarios()...)
	list = append(list, saidScenarios()...)
	list = append(list, runScenarios()...)
	return append(list, screenScenarios()...)
}
