package lazy

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestMadeOnceOnFirstUse(t *testing.T) {
	var made atomic.Int32
	v := Value[map[string]int]{New: func() map[string]int { made.Add(1); return map[string]int{"a": 1} }}
	if made.Load() != 0 {
		t.Error("made before it was read")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := v.Get()["a"]; got != 1 {
				t.Errorf("read %d", got)
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
}
