package keep

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// Whatever is asked for: a search that skips lines by their bytes finds what one
// that decodes every line finds, with runs that are there twice and lines that a
// crash cut off.
func TestSearchFindsWhatDecodingFinds(t *testing.T) {
	texts := []string{"", "python3 serve.py", `sh -c "a < b & c"`, "größe \xff", "4711", "7"}
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		var all []runs.Run
		at := time.Unix(1_800_000_000, 0).UTC()
		for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
			code := rapid.SampledFrom([]int{0, 0, 1, 10}).Draw(t, "code")
			r := runs.Run{
				ID:    rapid.Uint64Range(1, 8).Draw(t, "id"),
				Who:   runs.Who{UID: rapid.IntRange(0, 12).Draw(t, "uid"), Command: rapid.SampledFrom(texts).Draw(t, "command")},
				Start: at.Add(time.Duration(i) * time.Minute), End: runs.Ending{Kind: runs.Exited, At: at.Add(time.Hour), Code: &code},
				Processes: []runs.Process{{PID: rapid.SampledFrom([]int{7, 4711}).Draw(t, "pid")}}, Left: []runs.Left{},
			}
			if rapid.Bool().Draw(t, "killed") {
				r.End = runs.Ending{Kind: runs.Killed, Signal: 9}
			}
			if name := rapid.SampledFrom(texts).Draw(t, "job"); name != "" {
				r.Job = &runs.Job{Kind: runs.JobSlurm, ID: name}
			}
			line, err := json.Marshal(&r)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 9).Draw(t, "torn") == 0 {
				line = line[:len(line)/2]
			} else if again, ok := parse(line); ok {
				all = append(all, again)
			}
			text = append(append(text, line...), '\n')
		}
		q := runs.Query{Failed: rapid.Bool().Draw(t, "failed"), Command: rapid.SampledFrom(append(texts, "", "")).Draw(t, "with command"), Job: rapid.SampledFrom(append(texts, "", "", "")).Draw(t, "in job")}
		q.Text = rapid.SampledFrom([]string{"", "", "SERVE", "größe", "r7", "7", `"a`, "b & c", "nowhere"}).Draw(t, "text")
		if rapid.Bool().Draw(t, "by user") {
			uid := rapid.IntRange(0, 12).Draw(t, "user")
			q.UID = &uid
		}
		if name := rapid.SampledFrom([]string{"", "", "r7", "7", "4711"}).Draw(t, "name"); name != "" {
			q.Names = []string{name}
		}
		f := finder{q: &q, limit: runs.MaxAnswer, seen: map[uint64]bool{}, parts: partsOf(&q), word: wordOf(&q)}
		f.scan(text)
		plain := finder{q: &q, limit: runs.MaxAnswer, seen: map[uint64]bool{}}
		for _, r := range slices.Backward(all) {
			if !plain.done() || len(q.Names) == 0 {
				plain.add(&r)
			}
		}
		names := func(list []runs.Run) (out []string) {
			for i := range list {
				out = append(out, fmt.Sprintf("%s at %v", list[i].RunName(), list[i].Start))
			}
			return out
		}
		if a, b := names(f.found), names(plain.found); !slices.Equal(a, b) {
			t.Fatalf("found %v, want %v, in\n%s", a, b, text)
		}
		if a, b := names(f.otherwise), names(plain.otherwise); len(f.found) == 0 && !slices.Equal(a, b) {
			t.Fatalf("found otherwise %v, want %v, in\n%s", a, b, text)
		}
	})
}
