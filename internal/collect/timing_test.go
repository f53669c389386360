package collect

import (
	"testing"
	"time"
)

func TestTiming(t *testing.T) {
	var c Collector
	later := time.Now().Add(time.Hour)
	c.timing.note("driver", time.Now(), later, true)
	c.timing.note("memory", time.Now().Add(-time.Second), time.Now(), true) // too late
	c.timing.note("driver", time.Now(), later, false)
	runs := c.Runs()
	if len(runs) != 2 || runs[0].OK || runs[0].LastOK.IsZero() || runs[1].OK || runs[1].Took < time.Second || !runs[1].LastOK.IsZero() {
		t.Errorf("runs %+v", runs)
	}
}
