package setup

import "github.com/ttmon/ttmon/internal/hostfs"

// Broker returns the directory of Tenstorrent's device broker, or "" where the
// host has none. Its directories are enough: what is in them may be closed to
// other users, and a connection to its socket would be a request.
func Broker(root hostfs.Root) string {
	for _, dir := range []string{"/run/tt-device-broker", "/var/lib/tt-device-broker"} {
		if root.Exists(dir) {
			return dir
		}
	}
	return ""
}
