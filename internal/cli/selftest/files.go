package selftest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// readAfter is how long the other program may take to read the files of one
// device: a chip that hangs keeps a read for ever.
const readAfter = 2 * time.Second

// errBlocked: a read of the driver's files did not return.
var errBlocked = errors.New("a read did not return within 2 s")

// reader is the program that reads files as a second witness: grep, which has
// nothing in common with ttmon's own reader.
const reader = "grep"

// readApart reads files with another program. What cannot be read is missing
// from the result. The reader is never waited for beyond readAfter.
func readApart(ctx context.Context, paths []string) (map[string]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readAfter)
	defer cancel()
	out, err := output(ctx, reader, append([]string{"-s", "-H", "-m", "1", "-e", "", "--"}, paths...)...)
	switch _, ended := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil || errors.Is(err, errStuck):
		return nil, errBlocked
	case err != nil && !ended: // a file that is missing is not an error here
		return nil, err
	}
	return parseGrep(string(out), paths), nil
}

// parseGrep splits "path:line" by the paths that were asked for; a path may
// have a colon in it.
func parseGrep(out string, paths []string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		for _, path := range paths {
			if value, ok := strings.CutPrefix(line, path+":"); ok {
				found[path] = strings.TrimSpace(value)
				break
			}
		}
	}
	return found
}

// place is a directory with files of a device.
type place uint8

const (
	inClass place = iota // /sys/class/tenstorrent/tenstorrent!N
	inPCI                // /sys/bus/pci/devices/<bdf>
	inHwmon              // …/hwmon/hwmon*
)

// path is where a file of a device is; empty: there is no such directory.
func path(root hostfs.Root, index int, bus string, in place, file string) string {
	switch in {
	case inClass:
		return root.Path(fmt.Sprintf("/sys/class/tenstorrent/tenstorrent!%d/%s", index, file))
	case inPCI:
		return root.Path("/sys/bus/pci/devices/" + bus + "/" + file)
	default:
		found, err := filepath.Glob(root.Path("/sys/bus/pci/devices/" + bus + "/hwmon/hwmon*"))
		if err != nil || len(found) != 1 {
			return ""
		}
		return filepath.Join(found[0], file)
	}
}
