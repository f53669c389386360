package truth

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

var (
	composeCount    = flag.Int("compose", 0, "play so many random compositions (0: a few that are always the same)")
	composeShrink   = flag.Int("compose.shrink", 40, "play so many simpler compositions of one that is wrong, at most")
	composeParallel = flag.Int("compose.parallel", 0, "play so many at a time (default: one for each core)")
	composeFrom     = flag.Uint64("compose.from", 1, "the seed of the first of them")
	composeJSON     = flag.String("compose.json", "", "play this composition only, as a failure prints it")
	composeSeed     = flag.Uint64("compose.seed", 0, "play the composition of this seed only")
)

// usualSeeds are those that make test plays.
var usualSeeds = []uint64{1, 2, 3, 4, 9, 12, 17, 30}

// compositionVar has the composition that a process is to play.
const compositionVar = "TTMON_COMPOSITION"

// composed is what came of a composition, from the process that played it.
type composed struct {
	Count map[verdict]int
	Wrong []mistake
}

// mistake is a wrong figure.
type mistake struct {
	Kind string // the view and the figure, without numbers: what stays the same in simpler compositions
	Text string
}

func (r composed) String() string {
	var lines []string
	for _, m := range r.Wrong {
		lines = append(lines, "  "+m.Text)
	}
	return strings.Join(lines, "\n")
}

// shares reports whether two outcomes have a kind of mistake in common.
func (r composed) shares(o composed) bool {
	for _, m := range r.Wrong {
		for _, n := range o.Wrong {
			if m.Kind == n.Kind {
				return true
			}
		}
	}
	return false
}

var digits = regexp.MustCompile(`[0-9][0-9:.]*`)

// outcome begins the line with it.
const outcome = "COMPOSED "

// TestCompose plays random compositions, each where no process of another one
// is in sight, and holds every figure of every view against what is so. One
// that shows something wrong is made simpler as long as it still does.
func TestCompose(t *testing.T) {
	if text := os.Getenv(compositionVar); text != "" {
		playComposition(t, text)
		return
	}
	var mu sync.Mutex
	count := map[verdict]int{}
	t.Run("all", func(t *testing.T) {
		for _, c := range compositions(t) {
			t.Run(fmt.Sprint(c.Seed), func(t *testing.T) {
				t.Parallel()
				hermetic.Need(t)
				hermetic.NeedOtherUsers(t) // most have programs and viewers of several
				r := playAlone(t, c)
				if len(r.Wrong) > 0 {
					reportWrong(t, c, r)
				}
				mu.Lock()
				defer mu.Unlock()
				for v, n := range r.Count {
					count[v] += n
				}
			})
		}
	})
	fmt.Printf("%d compositions, %d figures: %d right, %d bounded, %d missing with a reason, %d wrong\n",
		len(compositions(t)), count[right]+count[bounded]+count[missing]+count[wrong], count[right], count[bounded], count[missing], count[wrong])
}

// compositions are those that the flags ask for.
func compositions(t *testing.T) (list []composition) {
	t.Helper()
	switch {
	case *composeJSON != "":
		list = make([]composition, 1)
		if err := json.Unmarshal([]byte(*composeJSON), &list[0]); err != nil {
			t.Fatal(err)
		}
	case *composeSeed != 0:
		list = append(list, compose(*composeSeed))
	case *composeCount == 0:
		for _, seed := range usualSeeds {
			list = append(list, compose(seed))
		}
	}
	for i := range uint64(*composeCount) {
		if *composeSeed == 0 {
			list = append(list, compose(*composeFrom+i))
		}
	}
	return list
}

// playAlone plays a composition in a process of its own.
func playAlone(t *testing.T, c composition) (r composed) {
	t.Helper()
	out, err := hermetic.Again(t, "^TestCompose$", compositionVar+"="+c.encode())
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), outcome); ok {
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	if strings.Contains(out, "--- SKIP: ") {
		t.Skip(out)
	}
	t.Fatalf("%s\ncould not be played: %v\n%s", c, err, out)
	return r
}

// reportWrong finds the simplest composition that still shows something wrong.
func reportWrong(t *testing.T, c composition, r composed) {
	t.Helper()
	t.Logf("%s\nshows:\n%s", c, r)
	small, left := c, *composeShrink
	for simpler := true; simpler; {
		simpler = false
		for _, d := range small.simpler() {
			if left--; left < 0 {
				break
			}
			if s := playAlone(t, d); s.shares(r) {
				small, r, simpler = d, s, true
				break
			}
		}
	}
	t.Errorf("the simplest composition that is still wrong:\n%s\nshows:\n%s\nplay it with -args -compose.json '%s'", small, r, small.encode())
}

// playComposition plays one in this process, and prints what came of it. What
// ttmond shows may be of a moment ago: a figure is wrong if it stays so.
func playComposition(t *testing.T, text string) {
	var c composition
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	h := (&stage{T: t, name: "composition", alone: true}).play(c)
	all := composed{Count: map[verdict]int{right: h.secret.answers, wrong: len(h.secret.leaks)}, Wrong: h.secret.leaks}
	for _, v := range c.Viewers {
		r, seen := composed{}, map[time.Time]bool{}
		for limit := time.Now().Add(3 * settles); ; time.Sleep(200 * time.Millisecond) {
			l := h.viewAs(v)
			r = l.judge()
			if len(r.Wrong) == 0 || time.Now().After(limit) && h.caughtUp(seen, l.snap) {
				break
			}
		}
		for verdict, n := range r.Count {
			all.Count[verdict] += n
		}
		all.Wrong = append(all.Wrong, r.Wrong...)
	}
	line, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s%s\n", outcome, line)
}

// judge holds everything against the truth.
func (l *looks) judge() composed {
	r := composed{Count: map[verdict]int{}}
	for i := range l.figures {
		f := &l.figures[i]
		v, why := f.judge()
		r.Count[v]++
		if v == wrong {
			n, bound, known := f.said.Best()
			said := "nothing (" + f.said.Status().String() + ")"
			if known {
				said = fmt.Sprintf("%s %d", bound, n)
			}
			cause, _, _ := strings.Cut(why, ":")
			text := fmt.Sprintf("%s, %s, %s: it is %s, ttmon says %s: %s", l.viewer, f.view, f.what, f.want, said, why)
			r.Wrong = append(r.Wrong, mistake{f.view + " " + digits.ReplaceAllString(f.what, "#") + " " + cause, text})
		}
	}
	for _, text := range l.broken {
		r.Count[wrong]++
		r.Wrong = append(r.Wrong, mistake{digits.ReplaceAllString(text, "#"), fmt.Sprintf("%s, %s", l.viewer, text)})
	}
	return r
}
