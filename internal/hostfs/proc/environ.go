package proc

import (
	"bytes"
	"fmt"
)

// maxEnviron is more than the kernel allows for an environment.
const maxEnviron = 8 << 20

// Environ returns the variables of a process's first environment whose names
// keep accepts, as they were when it was started (a program may have changed
// its own since). Values are raw. Needs the right to trace the process.
func (r *Reader) Environ(p *Process, keep func(key string) bool) (map[string]string, error) {
	b, err := r.Guard.read(p, "environ", nil, maxEnviron)
	if err != nil {
		return nil, fmt.Errorf("reading the environment of process %d: %w", p.PID, err)
	}
	return parseEnviron(b, keep), nil
}

// parseEnviron reads NUL-separated "key=value". Of several with the same key
// the first counts, as it does for getenv.
func parseEnviron(b []byte, keep func(key string) bool) map[string]string {
	vars := map[string]string{}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		k, v, ok := bytes.Cut(entry, []byte{'='})
		if !ok || len(k) == 0 {
			continue
		}
		key := string(k)
		if _, again := vars[key]; !again && keep(key) {
			vars[key] = string(v)
		}
	}
	return vars
}
