package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/node/stream/backlog"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/past/page"
)

// Of the user whose data is everywhere in a filled answer.
const (
	ownerUID = 47110815
	ownerPID = 7
)

// filled gives each text of a value a mark, and remembers which field has it.
type filled struct {
	fields []reflect.StructField // by mark: the deepest field with a decision, else the field itself
	names  []string
}

var markPattern = regexp.MustCompile(`zq(\d+)qz`)

// harmful would turn the line of a terminal round, and begin a command to it.
const harmful = "\u202e\u009b"

// mark is the text for a field that is reached as name; decided is the innermost field
// around it, or itself, that says who may see it.
func (f *filled) mark(name string, decided reflect.StructField) string {
	f.fields, f.names = append(f.fields, decided), append(f.names, name)
	return fmt.Sprintf("zq%dqz", len(f.names)-1) + harmful
}

// fill gives v a value that is not zero.
func (f *filled) fill(v reflect.Value, name string, decided reflect.StructField) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.mark(name, decided))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(ownerPID)
		if last := name[strings.LastIndexByte(name, '.')+1:]; last == "UID" || last == "Owner" {
			v.SetInt(ownerUID)
		}
	case reflect.Uint, reflect.Uint64, reflect.Uint32:
		v.SetUint(ownerPID)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), name, decided)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), name, decided)
	case reflect.Struct:
		f.fillStruct(v, name, decided)
	}
}

func (f *filled) fillStruct(v reflect.Value, name string, decided reflect.StructField) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Now().UTC().Truncate(time.Second)))
		return
	}
	if status := v.FieldByName("Status"); status.IsValid() && status.Type() == reflect.TypeFor[model.Status]() {
		status.Set(reflect.ValueOf(model.Known))
		f.fill(v.FieldByName("V"), name, decided)
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !v.Field(i).CanSet() {
			continue
		}
		inner := decided
		if field.Tag.Get("see") != "" {
			inner = field
		}
		f.fill(v.Field(i), name+"."+field.Name, inner)
	}
}

// of returns a filled T.
func of[T any](f *filled) (x T) {
	f.fill(reflect.ValueOf(&x).Elem(), reflect.TypeFor[T]().String(), reflect.StructField{})
	return x
}

type filledFailures struct{ record *failure.Record }

func (f filledFailures) List(allow func(uid int) bool) (list []failure.Summary) {
	if allow(ownerUID) {
		list = append(list, f.record.Summary())
	}
	return list
}
func (f filledFailures) Get(string) (*failure.Record, bool) { return f.record, true }

var errNoMore = errors.New("no more")

// once sends one thing, if it may.
type once[T any] struct {
	allow func(pid, uid int) bool
	x     []T
}

func (o *once[T]) next() (x []T, err error) {
	if x, o.x = o.x, nil; x == nil || !o.allow(ownerPID, ownerUID) {
		return nil, errNoMore
	}
	return x, nil
}
func (o *once[T]) Close() {}

type onceChanges struct{ once[*changes.State] }

func (o *onceChanges) Next(context.Context) (b changes.Batch, err error) {
	b.States, err = o.next()
	return b, err
}

type oncePrograms struct{ once[launches.Message] }

func (o *oncePrograms) Next(context.Context) ([]launches.Message, error) { return o.next() }

// filledHost serves a host every text of which has a mark.
func filledHost(t *testing.T, f *filled, hiding *int) (*api.Server, string, *model.Snapshot) {
	t.Helper()
	snap := of[model.Snapshot](f)
	snap.Source, snap.Processes[0].State, snap.Devices[0].State = model.Daemon, model.Running, model.StateOK
	event, run := of[model.Event](f), of[runs.Answer](f).Runs[0]
	run.Job.Kind, run.End.Kind = runs.JobSlurm, runs.Exited
	log, err := eventlog.Open(t.TempDir(), eventlog.Sizes{File: 1 << 20, Recent: 99})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if err := log.Append(event); err != nil {
		t.Fatal(err)
	}
	record := api.FailedFor("f1", ownerUID)
	f.fill(reflect.ValueOf(&record.Process).Elem(), "failure.Process", reflect.StructField{})
	list := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 1 << 30, Align: 64, Smallest: 64}, blocks.FromStart)
	process := of[blocks.Process](f)
	process.Allocators = []*blocks.Allocator{{Chips: []uint64{5}, Lists: []*blocks.List{list}}}
	lines, stale, state, batch, dump := of[atpeak.ProcessLines](f), of[wire.Stale](f), of[changes.State](f), of[launches.Batch](f), of[api.Dump](f)
	lines.Schema = atpeak.Schema
	reports := ledger.New(ledger.Options{})
	for range 2 { // one that is there, and one that leaked
		p := reports.Open(of[ledger.Info](f), time.Now())
		reports.Apply(p, []ledger.Event{{Op: ledger.Alloc, ID: 1, Size: 1 << 20}}, time.Now())
		if len(reports.Processes()) == 1 && len(reports.Leaks()) == 0 {
			reports.End(p, "exited", time.Now(), func(ledger.Leftovers) {})
			reports.Wait()
		}
	}
	health := of[api.Health](f)
	library := &health.Uprobe.Libraries[0]
	library.Path = "/" + library.Path + "/libtt_metal.so"
	feed := new(api.Feed)
	s, url := overTCP(t, feed, func(o *api.Options) {
		o.Ledger, o.Hiding = reports, func() api.Hiding { return api.Hiding{Level: *hiding, GID: -1} }
		o.Stream = &api.Stream{Events: func() *backlog.Events { return &backlog.Events{Log: log} }, State: func() stream.State { return stream.State{} }}
		o.Stale = func() ([]model.Leftover, bool) { return stale.Regions, true }
		o.Topology = func(*model.Snapshot) *model.Topology { return &model.Topology{} }
		o.Blocks = func(int) (api.BlocksOf, bool) { return api.BlocksOf{Process: &process, UID: ownerUID}, true }
		o.Failures = filledFailures{record}
		o.Lines = func(model.ProcessID, time.Time) (api.LinesOf, bool) {
			return api.LinesOf{ProcessLines: lines, UID: ownerUID}, true
		}
		o.Changes = func(allow func(pid, uid int) bool) api.Changes {
			return &onceChanges{once[*changes.State]{allow, []*changes.State{&state}}}
		}
		o.Programs = func(allow func(pid, uid int) bool) api.Programs {
			return &oncePrograms{once[launches.Message]{allow, []launches.Message{{Batch: &batch}}}}
		}
		o.Dump = func(_ string, uid int, all bool) string { return fmt.Sprint(uid, all) }
		o.Dumps = func() []api.Dump { return []api.Dump{dump} }
		o.Health = func(_ context.Context, h *api.Health) { h.Uprobe = health.Uprobe }
		memory := past.Memory{
			Events: func() past.EventLog { return log },
			Past:   func(time.Time) (time.Time, []byte, error) { return snap.Time, wire.Append(nil, &snap), nil },
			Span:   func() (time.Time, time.Time) { return snap.Time, snap.Time },
			Runs: func(q runs.Query) (list []runs.Run, more bool, err error) {
				if q.Visible == nil || q.Visible(run.UID) {
					list = append(list, run)
				}
				return list, false, nil
			},
			Alerts:  func() any { return nil },
			Changed: func(context.Context, time.Time, time.Time) (*changed.Answer, error) { return &changed.Answer{}, nil },
			Range: func(context.Context, string, time.Time, time.Time, time.Duration) ([]past.Series, error) {
				return nil, nil
			},
		}
		memory.Serve(o)
		page.Moments(memory.Snapshot).Serve(o)
	})
	feed.Publish(&snap)
	return s, url, &snap
}

// read makes a call with a session. A call that does not end is read up to the first
// snapshot.
func read(t *testing.T, c *api.Call, address, session string, snap *model.Snapshot) (status int, body string) {
	t.Helper()
	query := map[string]string{
		"/v1/facts": "?device=" + url.QueryEscape(snap.Devices[0].BusID), "/v1/past": "?at=" + snap.Time.Format(time.RFC3339), "/v1/range": "?metric=power.draw", "/v1/runs": "?id=r7",
		"/v1/runs/compare": "?run=r7&with=r7", "/v1/lines": "?pid=7&start=7",
	}
	path := strings.NewReplacer("{pid}", strconv.Itoa(ownerPID), "{id}", "f1").Replace(c.Path)
	r, err := http.NewRequestWithContext(t.Context(), c.Method, address+path+query[c.Path], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(api.SessionHeader, session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var b []byte
	for in := bufio.NewReader(answer.Body); ; {
		line, err := in.ReadBytes('\n')
		if b = append(b, line...); err != nil || strings.HasPrefix(c.Kind, "text/event") && bytes.Contains(line, []byte(strings.TrimSuffix(snap.Host.Name, harmful))) ||
			c.Path == stream.Path && bytes.Contains(line, []byte(strings.TrimSuffix(snap.Host.Name, harmful))) {
			return answer.StatusCode, string(b)
		}
	}
}

// TestEveryAnswerIsDecided: in no answer of any call is a text of another user's of
// which the field, or one around it, does not say who may see it, or that says that
// this viewer may not. A new field without a decision fails as soon as it is sent.
func TestEveryAnswerIsDecided(t *testing.T) {
	f, hiding := new(filled), 0
	s, address, snap := filledHost(t, f, &hiding)
	remembered := map[string]bool{}
	for _, c := range (past.Memory{}).Calls(s) {
		remembered[c.Path] = true
	}
	shown := func(body string) (list []int) {
		for _, m := range markPattern.FindAllStringSubmatch(body, -1) {
			n, _ := strconv.Atoi(m[1])
			list = append(list, n)
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	whole := map[string][]int{} // what root is shown, by call
	for _, v := range []struct {
		name, session string
		hiding        int
		sees          []string
	}{
		{"the owner", s.SessionOf(ownerUID), 2, nil},
		{"root", s.SessionOf(0), 2, nil},
		{"another user", s.SessionOf(2000), 0, []string{"all", "user", "proc", "past"}},
		{"over TCP", "", 0, []string{"all", "user", "proc"}},
		{"another user, hidepid=2", s.SessionOf(2000), 2, []string{"all"}},
		{"over TCP, hidepid=1", "", 1, []string{"all", "user"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			s.SetHiding(func() { hiding = v.hiding })
			for _, c := range s.OfferedCalls() {
				if c.Method != "GET" {
					continue
				}
				status, body := read(t, &c, address, v.session, snap)
				marks := shown(body)
				if strings.ContainsAny(body, harmful) {
					t.Errorf("%s does something to a terminal that it is printed on", c.Path)
				}
				if v.sees == nil {
					whole[c.Path] = marks
					if status != http.StatusOK {
						t.Errorf("%s: status %d, so this test cannot fail: %.300s", c.Path, status, body)
					}
					continue
				}
				for _, n := range whole[c.Path] {
					word := f.fields[n].Tag.Get("see")
					may := slices.Contains(v.sees, word) || word == "past" && !remembered[c.Path] && slices.Contains(v.sees, "proc")
					switch is := slices.Contains(marks, n); {
					case is && (word == "" || word == "fields"):
						t.Errorf("%s: who may see %s? It has no tag", c.Path, f.names[n])
					case is && !may:
						t.Errorf("%s: %s (see:%q) is shown", c.Path, f.names[n], word)
					case !is && may && (c.Path == "/v1/snapshot" || v.hiding == 0):
						t.Errorf("%s: %s (see:%q) is not shown", c.Path, f.names[n], word)
					}
				}
			}
		})
	}
}

// TestHiddenFigures: figures have no marks. Of a hidden process none is left that is not
// for all.
func TestHiddenFigures(t *testing.T) {
	s := of[model.Snapshot](new(filled))
	hidden := api.Viewpoint{Level: 2, UID: 2000, Own: true}.Filter(&s).Processes[0]
	for v, i := reflect.ValueOf(hidden), 0; i < v.NumField(); i++ {
		known := !v.Field(i).IsZero()
		if r, ok := v.Field(i).Interface().(interface{ Known() bool }); ok {
			known = r.Known()
		}
		if field := v.Type().Field(i); known != (field.Tag.Get("see") == "all") {
			t.Errorf("%s (see:%q): known: %t", field.Name, field.Tag.Get("see"), known)
		}
	}
}
