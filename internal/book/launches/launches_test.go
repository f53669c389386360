package launches

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is sent is what is received, with programs that overlap, and without names.
func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    Message
	}{
		{"nothing but a time", Message{UpTo: 12345}},
		{"one program", Message{Batch: &Batch{PID: 7, Chip: 1<<64 - 1, N: 1, Programs: []Program{{Start: 1e18, Length: 700, Name: "matmul"}}}}},
		{"none, and how many are missing", Message{Batch: &Batch{PID: 7, Chip: 5, N: 100, From: 3}}},
		{"several, two of which overlap", Message{Batch: &Batch{
			PID: 7, StartTicks: 99, Process: "py \"x\"", Chip: 5, Number: 3, N: 1 << 40, Lost: 17,
			Programs: []Program{{1e18, 700, "a"}, {1e18 + 500, 100, ""}, {1e18 + 5000, 0, "a"}, {1e18 + 5000, 1 << 50, "ü"}},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := Append(nil, &tt.m)
			if err != nil {
				t.Fatal(err)
			}
			if text[len(text)-1] != '\n' {
				t.Errorf("no line: %q", text)
			}
			got, err := Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(tt.m, got); diff != "" {
				t.Errorf("-sent +received:\n%s", diff)
			}
		})
	}
}

// A line that makes no sense is refused, whatever is wrong with it.
func TestNonsense(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"no JSON", `{`},
		{"no number", `{"pid":1,"names":["a"],"programs":[[0,1,0]]}`},
		{"less than nothing is missing", `{"pid":1,"n":1,"from":2}`},
		{"a name that is not there", `{"pid":1,"n":1,"names":["a"],"programs":[[0,1,1]]}`},
		{"a length below zero", `{"pid":1,"n":1,"names":["a"],"time":9,"programs":[[0,-1,0]]}`},
		{"before all time", `{"pid":1,"n":1,"names":["a"],"time":9,"programs":[[-10,1,0]]}`},
		{"after all time", `{"pid":1,"n":1,"names":["a"],"time":9,"programs":[[9223372036854775807,1,0]]}`},
		{"a sum after all time", `{"pid":1,"n":1,"names":["a"],"time":2305843009213693950,"programs":[[2305843009213693950,2305843009213693950,0]]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if m, err := Parse([]byte(tt.text)); err == nil {
				t.Errorf("read as %+v", m)
			}
		})
	}
}

// FuzzParse: whatever a line says, it is refused, or what it says can be sent again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"up_to":5}`))
	f.Add([]byte(`{"pid":7,"chip":5,"number":0,"n":3,"time":1000,"names":["a","b"],"programs":[[0,7,0],[-2,4,1]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil || m.Batch == nil {
			return
		}
		if len(m.Batch.Programs) > len(text) {
			t.Fatalf("%d programs of %d bytes", len(m.Batch.Programs), len(text))
		}
		again, err := Append(nil, &m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(again); err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}
