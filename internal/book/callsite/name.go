package callsite

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Name is a frame in short: model.py:88, or libtt_metal.so+0x1234. It is not
// escaped: views do that.
func Name(f ledgerfile.Frame) string {
	name := filepath.Base(f.File)
	if f.Line == 0 && f.Offset != 0 {
		return fmt.Sprintf("%s+%#x", name, f.Offset)
	}
	return name + ":" + strconv.Itoa(f.Line)
}
