package params

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/eventlog"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// A question arrives as it was asked, and what was not asked is not in the URL.
func TestRoundTrip(t *testing.T) {
	uid, no := 0, false
	at := time.Date(2026, 11, 15, 8, 30, 0, 5e6, time.UTC)
	ofRuns := runs.Query{Names: []string{"r3", "a&b"}, UID: &uid, Since: at, Text: "größe", Leaked: true, Running: &no, Limit: 7}
	v := Values(&ofRuns)
	if v.Has("job") || v.Has("failed") || v.Get("running") != "false" || v.Get("uid") != "0" {
		t.Errorf("%v", v)
	}
	var gotRuns runs.Query
	if err := Parse(v, &gotRuns); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ofRuns, gotRuns, cmpopts.IgnoreFields(runs.Query{}, "Visible", "Show")); diff != "" {
		t.Error(diff)
	}
	ofEvents := eventlog.Query{After: 9, Until: at, Kinds: []model.EventKind{model.EventAlert, model.EventNoRoom}, Level: model.Warning}
	var gotEvents eventlog.Query
	if err := Parse(Values(&ofEvents), &gotEvents); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ofEvents, gotEvents); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	for text, q := range map[string]any{
		"uid=-1": &runs.Query{}, "uid=anna": &runs.Query{}, "limit=all": &runs.Query{}, "leaked=perhaps": &runs.Query{}, "since=yesterday": &runs.Query{},
		"after=-1": &eventlog.Query{}, "level=awful": &eventlog.Query{},
	} {
		t.Run(text, func(t *testing.T) {
			v, err := url.ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := Parse(v, q); err == nil {
				t.Errorf("%+v", q)
			}
		})
	}
}

func TestOf(t *testing.T) {
	if list := Of(eventlog.Query{}); len(list) != 7 || list[0] != (Param{Name: "after", Help: "only events with a higher number"}) {
		t.Errorf("%+v", list)
	}
}
