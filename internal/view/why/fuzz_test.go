package why

import (
	"encoding/json"
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// FuzzShown: a record comes from a file, or from another machine. Whatever it says,
// it is shown, or refused when it is read.
func FuzzShown(f *testing.F) {
	for _, r := range stories() {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"ttmon.failure/1","kind":"no_room","pool":"l1","verdict":{"cause":"too_large"}}`))
	f.Add([]byte(`{"schema":"ttmon.failure/1","kind":"clash","pool":"l1","clash":{"reach":5,"base_address":9},"verdict":{"cause":"reserved","reserved_by":"cut"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := failure.Decode(b)
		if err != nil {
			return
		}
		for _, width := range []int{0, 20, 80} {
			Append(nil, r, Options{Now: noon, Stack: true}, lines.Options{Width: width, Color: true})
		}
		sheet.AppendHTML(nil, Sheet(r, Options{Now: noon}))
		AppendList(nil, []failure.Summary{r.Summary()}, noon, lines.Options{})
		_ = story.Event(r, true)
	})
}
