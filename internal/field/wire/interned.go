package wire

// interned are strings of JSON texts. Names, paths and reasons are the same in each
// snapshot, and many of them on each device: of 1,300 allocations for 32 devices
// 250 are left.
type interned struct {
	known map[string]string // by their text between quotes
	bytes int
}

// Bounds of what is kept. What is longer is a command line, and rare.
const (
	maxInterned      = 256
	maxInternedBytes = 256 << 10
)

// of is the string of a text between quotes. A nil interned keeps none.
func (n *interned) of(text []byte) string {
	if n == nil {
		return unquote(text)
	}
	if s, ok := n.known[string(text)]; ok {
		return s
	}
	s := unquote(text)
	if len(text) > maxInterned {
		return s
	}
	if n.bytes += len(text); n.known == nil || n.bytes > maxInternedBytes {
		n.known, n.bytes = map[string]string{}, len(text)
	}
	n.known[string(text)] = s
	return s
}
