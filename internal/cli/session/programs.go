package session

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// programStream is how programs come in. Without in they are not asked for.
type programStream struct {
	in    chan received[launches.Message]
	on    bool
	upTo  time.Time // what was reported before has been sent
	why   error     // why it is not on
	noted error     // the reason that was last recorded
}

// addProgram takes in what a ttmond sent.
func (s *Session) addProgram(x received[launches.Message], now time.Time) {
	p := &s.programs
	switch {
	case x.began:
		p.on, p.why, p.noted = true, nil, nil
	case x.why != nil:
		if p.on {
			s.r.ProgramsBroken()
		}
		p.on = false
		s.noPrograms(x.why, now)
	default:
		if x.message.Batch != nil {
			s.r.Programs(x.message.Batch, now)
		}
		if x.message.UpTo > 0 {
			p.upTo = time.Unix(0, x.message.UpTo)
		}
	}
}

// noPrograms records, once, why programs are not recorded.
func (s *Session) noPrograms(why error, now time.Time) {
	p := &s.programs
	p.why = why
	if p.noted != nil && p.noted.Error() == why.Error() {
		return
	}
	p.noted = why
	s.r.Event(model.Event{
		Time: now, Kind: model.EventTTMond, Level: model.Warning, Short: "programs are not recorded",
		Text: words.ProgramsNotRecorded(why),
	})
}

// Why nothing sends programs.
var (
	errNoTTMond = errors.New("no ttmond runs on this host")
	errTooShort = errors.New("the recording ended before it began to")
)

// programsEnd is how long the end of a recording waits for the last programs.
const programsEnd = 2 * time.Second

// awaitPrograms waits until what was reported up to now has been sent.
func (s *Session) awaitPrograms() {
	p, begun := &s.programs, time.Now()
	if p.in == nil {
		return
	}
	for p.on && p.upTo.Before(begun) && time.Since(begun) < max(programsEnd, s.stream.most) {
		select {
		case x := <-p.in:
			s.addProgram(x, time.Now())
		case <-time.After(20 * time.Millisecond):
		}
	}
	switch {
	case p.on && p.upTo.Before(begun):
		s.r.ProgramsBroken()
		s.r.Event(model.Event{
			Time: begun, Kind: model.EventTTMond, Level: model.Warning, Short: "the last programs are missing",
			Text: words.ProgramsBehind(p.upTo),
		})
	case !p.on && p.why == nil && s.latest != nil && s.latest.Source == model.Daemon:
		s.noPrograms(errTooShort, begun)
	case !p.on && p.why == nil:
		s.noPrograms(errNoTTMond, begun)
	}
}

// appendPrograms prints how many programs were recorded, and what is missing.
func (s *Session) appendPrograms(dst []byte) []byte {
	if s.programs.in == nil {
		return dst
	}
	recorded, missed := s.r.CountPrograms()
	if s.programs.why != nil {
		dst = fmt.Appendf(dst, "ttmon: %s\n", words.ProgramsNotRecorded(s.programs.why))
	}
	switch {
	case recorded == 0 && s.programs.why == nil && os.Geteuid() != 0:
		dst = append(dst, "ttmon: none of your programs ran on a chip; programs of other users are recorded for root only\n"...)
	case recorded > 0 || s.programs.why == nil:
		dst = fmt.Appendf(dst, "ttmon: recorded %s of the chips: ttmon export FILE --perfetto shows each\n", words.Count(int(recorded), "program"))
	}
	if missed > 0 {
		dst = fmt.Appendf(dst, "ttmon: %d programs are missing, which ttmond or the recorder was too slow for; the recording says where\n", missed)
	}
	return dst
}
