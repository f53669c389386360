package stream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	var b []byte
	b = AppendJSON(b, KindHello, Hello{Stream: Version, Log: "x", First: 1})
	b = Append(b, KindSnapshot, []byte("{}\n"))
	b = Append(b, "later", nil)
	r := NewReader(bytes.NewReader(b))
	for _, want := range []struct {
		kind Kind
		body string
	}{
		{KindHello, `{"stream":1,"version":"","instance":"","log":"x","first":1,"last":0}`},
		{KindSnapshot, "{}\n"},
		{"later", ""},
	} {
		k, body, err := r.Next()
		if err != nil || k != want.kind || string(body) != want.body {
			t.Fatalf("%s %q, %v; want %s %q", k, body, err, want.kind, want.body)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A body that is kept is not the reader's any more.
func TestKeep(t *testing.T) {
	var b []byte
	for _, body := range []string{"one", "two, which is longer", "3"} {
		b = Append(b, KindSnapshot, []byte(body))
	}
	r := NewReader(bytes.NewReader(b))
	var kept []string
	var bodies [][]byte
	for {
		_, body, err := r.Next()
		if err != nil {
			break
		}
		kept, bodies = append(kept, string(body)), append(bodies, r.Keep())
	}
	for i, body := range bodies {
		if string(body) != kept[i] || string(append(body, '!')) != kept[i]+"!" {
			t.Errorf("body %d is %q, was %q", i, body, kept[i])
		}
	}
	if len(kept) != 3 {
		t.Errorf("%d bodies, want 3", len(kept))
	}
}

func TestFramesThatAreNone(t *testing.T) {
	for in, want := range map[string]error{
		"hello":                         io.ErrUnexpectedEOF,
		"hello\n":                       ErrFrame,
		" 3\nabc\n":                     ErrFrame,
		"hello -1\n\n":                  ErrFrame,
		"hello 99999999\n":              ErrFrame,
		"hello 5\nabc":                  ErrFrame,
		"hello 3\nabcd":                 ErrFrame,
		strings.Repeat("x", 100) + "\n": ErrFrame,
		"HTTP/1.1 400 Bad Request\r\n":  ErrFrame,
	} {
		t.Run(in, func(t *testing.T) {
			if _, _, err := NewReader(strings.NewReader(in)).Next(); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", in, err, want)
			}
		})
	}
}

// Whatever comes, a reader ends, takes no more memory than came, and what it
// read can be written again.
func FuzzReader(f *testing.F) {
	f.Add([]byte("hello 2\n{}\nsnapshot 3\n{}\n\n"))
	f.Add([]byte("event 67108864\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in))
		var again []byte
		for {
			k, body, err := r.Next()
			if err != nil {
				break
			}
			again = Append(again, k, body)
		}
		if len(again) > len(in) {
			t.Errorf("%d bytes were read from %d", len(again), len(in))
		}
	})
}
