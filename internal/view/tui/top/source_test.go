package top

import (
	"errors"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestSourceGoneAndBack(t *testing.T) {
	st := open(t, 4, 120, 40)
	at := tuitest.Start.Add(2 * time.Minute)
	st.send(tui.Lost{Err: errors.New("connect: no such file"), At: at})
	st.send(tui.Lost{Err: errors.New("connect: no such file"), At: at.Add(11 * time.Second)})
	if !st.has("no update for 12 s: connect: no such file") || !st.has("NO DATA") || !st.has("182034") {
		t.Errorf("the screen does not say that the source is gone, or shows nothing:\n%s", st.draw())
	}
	st.sec = 140
	st.run(1)
	if !st.has("the source is back after 21 s") || st.has("NO DATA") {
		t.Errorf("the screen does not say that the source is back:\n%s", st.draw())
	}
	st.run(15)
	if st.has("the source is back") {
		t.Error("the return is told for ever")
	}
	st.keys("e")
	if !st.has("the source does not answer: connect") || !st.has("answers again after 21 s") {
		t.Errorf("not in the log:\n%s", st.draw())
	}
}

// ttmond goes and comes back: both are said, and shown where data comes from.
func TestDaemonGoneAndBack(t *testing.T) {
	st := open(t, 1, 120, 40)
	give := func(from model.Origin) {
		snap := tuitest.Host(1, st.sec)
		snap.Source = from
		st.sec++
		st.send(tui.Sample{Snapshot: snap})
	}
	give(model.Daemon)
	if !st.has("ttmond 1s") || st.has("has not answered") {
		t.Errorf("with ttmond:\n%s", st.draw())
	}
	give(model.Direct)
	give(model.Direct)
	if !st.has("ttmond has not answered since 12:02:00") || st.has("ttmond 1s") {
		t.Errorf("without ttmond:\n%s", st.draw())
	}
	give(model.Daemon)
	if st.has("has not answered") {
		t.Errorf("ttmond is back:\n%s", st.draw())
	}
	st.keys("e")
	if !st.has("ttmond does not answer any more") || !st.has("ttmond answers") {
		t.Errorf("not in the log:\n%s", st.draw())
	}
}

func TestBeforeTheFirstSample(t *testing.T) {
	c := config.Default()
	s, err := New(Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{t: t, s: s, g: cells.NewGrid(80, 24)}
	st.send(tui.Resize{W: 80, H: 24})
	if !st.has("Waiting for the first sample") {
		t.Error(st.draw())
	}
	st.send(tui.Lost{Err: errors.New("dial: refused"), At: tuitest.Start})
	if !st.has("no data: dial: refused") {
		t.Error(st.draw())
	}
}

func TestPause(t *testing.T) {
	st := open(t, 1, 120, 40)
	st.keys("p")
	before := st.draw()
	st.run(10)
	if st.draw() != before || !st.has("PAUSED") {
		t.Error("a paused screen moves")
	}
	_, newest := st.s.hist.Span()
	if newest.Sub(tuitest.Start) != 129*time.Second {
		t.Error("samples are lost while paused")
	}
	st.keys("p")
	if st.draw() == before || st.has("PAUSED") {
		t.Error("the screen does not continue")
	}
}
