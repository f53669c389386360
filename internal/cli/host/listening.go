package host

import (
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

// ListeningDaemons lists the sockets of ttmonds of all users that have the usual name,
// from the kernel's table of Unix sockets. Whether one may be asked is another question.
func ListeningDaemons() []string {
	table, err := hostfs.Root{}.Read("/proc/net/unix", 16<<20)
	if err != nil {
		return nil
	}
	return daemonSockets(string(table))
}

// daemonSockets picks them from the table: the fourth field of a line says whether a
// socket listens, and its path, if it has one, is all from the first slash on.
func daemonSockets(table string) (paths []string) {
	const acceptsConnections = "00010000" // __SO_ACCEPTCON
	for line := range strings.Lines(table) {
		before, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "/")
		fields := strings.Fields(before)
		if len(fields) == 7 && fields[3] == acceptsConnections && filepath.Base(path) == filepath.Base(client.SystemSocket) {
			paths = append(paths, "/"+path)
		}
	}
	return paths
}
