package api

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
)

// fillFields gives every field of v a value that is not its zero one.
func fillFields(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("secret")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint8:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillFields(t, v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(7, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillFields(t, v.Field(i))
			}
		}
	case reflect.Array, reflect.Map:
	default:
		t.Fatalf("a field of kind %v: fill it here", v.Kind())
	}
}

// seen compares what a viewer is shown with what there is, by the tag see of each
// field: shown says for each word whether the viewer gets such a field.
func seen(t *testing.T, of, got reflect.Value, shown map[string]bool) {
	t.Helper()
	for i := range of.NumField() {
		f := of.Type().Field(i)
		word := f.Tag.Get("see")
		full, there := of.Field(i), got.Field(i)
		if word == "fields" {
			if full.Kind() == reflect.Pointer {
				full, there = full.Elem(), there.Elem()
			}
			seen(t, full, there, shown)
			continue
		}
		want, known := shown[word]
		if !known {
			t.Errorf("%v.%s: who may see it? Its tag says %q", of.Type(), f.Name, word)
			continue
		}
		if same := reflect.DeepEqual(full.Interface(), there.Interface()); same != want {
			t.Errorf("%v.%s (see:%q): shown as it is: %t, want %t", of.Type(), f.Name, word, same, want)
		}
	}
}

// TestWhoSees: each field of a process says who may see it, and so it is, for each
// kind of viewer, in the present and in the past.
func TestWhoSees(t *testing.T) {
	everything := map[string]bool{"all": true, "proc": true, "past": true, "owner": true}
	for _, c := range []struct {
		name  string
		v     viewpoint
		shown map[string]bool
		past  bool // whether command lines of the past are shown
	}{
		{"root", viewpoint{}, everything, true},
		{"the owner", viewpoint{0, 1000, true}, everything, true},
		{"the owner, hidepid", viewpoint{2, 1000, true}, everything, true},
		{"another user", viewpoint{0, 2000, true}, map[string]bool{"all": true, "proc": true, "owner": false}, true},
		{"over TCP", viewpoint{0, -1, true}, map[string]bool{"all": true, "proc": true, "owner": false}, false},
		{"another user, hidepid", viewpoint{2, 2000, true}, map[string]bool{"all": true, "proc": false, "owner": false}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p model.Process
			fillFields(t, reflect.ValueOf(&p).Elem())
			p.UID, p.Devices[0].Doubts = model.Value(1000), nil
			s := &model.Snapshot{Processes: []model.Process{p}}
			got := c.v.on(s).filter(s)
			seen(t, reflect.ValueOf(p), reflect.ValueOf(got.Processes[0]), c.shown)
			if later := c.v.ofPast(s); (later.Processes[0].Cmdline.V == "secret") != c.past {
				t.Errorf("the command line of the past: %+v", later.Processes[0].Cmdline)
			}
			if c.v.level > 0 && c.v.uid != 1000 {
				return // such runs are not listed at all
			}
			var run runs.Run
			fillFields(t, reflect.ValueOf(&run.Who).Elem())
			run.UID, run.Job.Kind = 1000, runs.JobSlurm
			full := run
			c.v.ofRun(&run)
			shown := map[string]bool{"past": c.past}
			for word, is := range c.shown {
				if word != "past" {
					shown[word] = is
				}
			}
			seen(t, reflect.ValueOf(full.Who), reflect.ValueOf(run.Who), shown)
			if q := (runs.Query{Text: "secret", Show: c.v.ofRun}); !q.Matches(&full) {
				t.Error("what is shown is not found") // the name has it
			}
			if q := (runs.Query{Command: "secret", Show: c.v.ofRun}); q.Matches(&full) != c.past {
				t.Error("a search finds what is not shown")
			}
		})
	}
}

// TestHealthHidesPaths: where the libraries of users lie is for root.
func TestHealthHidesPaths(t *testing.T) {
	const path = "/home/alice/secret/libtt_metal.so"
	list := []WatchLibrary{{Path: path}}
	s, url := overTCP(t, func(o *Options) {
		o.Health = func(_ context.Context, h *Health) { h.Uprobe = &Watch{Libraries: list} }
	})
	root, _ := put(&s.sessions.live, session{caller{uid: 0, exists: true, remote: true}, time.Now().Add(time.Minute)}, maxSessions, time.Now())
	of := func(session string) any {
		_, tree := call(t, "GET", url+"/v1/health", session, "")
		return tree["uprobe"].(map[string]any)["libraries"].([]any)[0].(map[string]any)["path"]
	}
	if got := of(""); got != "libtt_metal.so" {
		t.Errorf("a client without a name reads %v", got)
	}
	if got := of(root); got != path {
		t.Errorf("root reads %v", got)
	}
}
