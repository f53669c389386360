package words

import (
	"path/filepath"
	"strings"
)

// CommandLine is a command line in so many columns: "python train.py --batch 32". The
// program goes by its name. Where the rest does not fit, so do the files that it
// names, from the left: what tells programs apart is at the end of a path.
func CommandLine(command string, width int) string {
	list := strings.Fields(Escape(command))
	for i, word := range list {
		if i > 0 && Width(strings.Join(list, " ")) <= width {
			break
		}
		if base := filepath.Base(word); strings.HasPrefix(word, "/") && base != "/" {
			list[i] = base
		}
	}
	if len(list) > 1 && strings.HasPrefix(list[0], "python") && !strings.HasPrefix(list[1], "-") && Width(strings.Join(list, " ")) > width {
		list = list[1:] // which interpreter runs it says least
	}
	return Truncate(strings.Join(list, " "), width)
}
