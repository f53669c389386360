package bank

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func draw(s *Screen) string {
	g := cells.NewGrid(70, 8)
	s.Draw(g)
	return g.String()
}

func process(blocksOf int) *blocks.Process {
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 1 << 20}, blocks.FromStart)
	for i := range blocksOf {
		l.Alloc(blocks.Block{Addr: uint64(i) * 4096, Size: 1024})
	}
	return &blocks.Process{PID: 42, Allocators: []*blocks.Allocator{{Lists: []*blocks.List{l}}}}
}

func TestScreen(t *testing.T) {
	s := New("mono")
	s.Update(tui.Resize{W: 70, H: 8})
	if got := s.Update(tui.Sample{}); !slices.Equal(got, []tui.Effect{Fetch{}}) {
		t.Errorf("a sample asks %v", got)
	}
	if got := s.Update(tui.Sample{}); len(got) != 0 {
		t.Errorf("asked twice: %v", got)
	}
	if out := draw(s); !strings.Contains(out, "asking ttmond") {
		t.Errorf("before the answer:\n%s", out)
	}
	s.Update(Answer{Process: process(20), Options: bankmap.Options{Title: "train.py"}, At: time.Unix(1, 0)})
	if out := draw(s); !strings.Contains(out, "process 42  train.py") || !strings.Contains(out, "DRAM of a chip") || !strings.Contains(out, "Quit") {
		t.Errorf("the answer:\n%s", out)
	}
	s.Update(tui.Key("end"))
	if out := draw(s); strings.Contains(out, "process 42") || !strings.Contains(out, "and 12 more") {
		t.Errorf("at the end:\n%s", out)
	}
	s.Update(tui.Key("home"))
	s.Update(Answer{Err: errors.New("it has ended"), At: time.Unix(2, 0)})
	if out := draw(s); !strings.Contains(out, "process 42") || !strings.Contains(out, "as of "+time.Unix(1, 0).Format("15:04:05")+": it has ended") {
		t.Errorf("after its end:\n%s", out)
	}
	if got := s.Update(tui.Key("q")); !slices.Equal(got, []tui.Effect{tui.Quit{}}) {
		t.Errorf("q: %v", got)
	}
}

func TestNothingYet(t *testing.T) {
	s := New("mono")
	s.Update(Answer{Err: errors.New("no such process")})
	if out := draw(s); !strings.Contains(out, "no such process") {
		t.Errorf("%s", out)
	}
	for _, k := range []tui.Key{"up", "down", "pgup", "pgdn", "end", "home"} {
		s.Update(k)
	}
	draw(s)
}
