package runs

import "testing"

// TestLinesQuery: a process is named by its pid and its start.
func TestLinesQuery(t *testing.T) {
	if v := (&Process{PID: 7, StartTicks: 9}).LinesQuery().Encode(); v != "pid=7&start=9" {
		t.Error(v)
	}
}
