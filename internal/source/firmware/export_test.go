package firmware

import "time"

// ErrLate is the error of a reader that has not answered in time.
var ErrLate = errLate

// StartSelf starts this program as a reader.
var StartSelf = startSelf

// Started counts the readers so far.
func (s *Source) Started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// SetSuperuser says whether PCI files can be mapped.
func (s *Source) SetSuperuser(is bool) { s.opts.Superuser = is }

// Settle waits until every reader has answered, and those that did have ended.
func (s *Source) Settle() {
	s.wait.Wait()
	for {
		s.mu.Lock()
		waiting := false
		for _, c := range s.chips {
			waiting = waiting || c.reader != nil && c.state != "stalled"
		}
		s.mu.Unlock()
		if !waiting {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Idle waits until no reader runs.
func (s *Source) Idle() {
	for {
		s.mu.Lock()
		n := len(s.own)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
