package runreport

import (
	"os"
	"strings"
)

// release names the release of tt-metal that a library belongs to, where it
// was installed as a Python package; otherwise it is empty.
func release(library string) string {
	before, _, ok := strings.Cut(library, "/site-packages/ttnn/")
	if !ok {
		return ""
	}
	names, err := os.ReadDir(before + "/site-packages")
	if err != nil {
		return ""
	}
	for _, n := range names {
		if v, ok := strings.CutPrefix(n.Name(), "ttnn-"); ok {
			if v, ok := strings.CutSuffix(v, ".dist-info"); ok {
				return "ttnn " + v
			}
		}
	}
	return ""
}
