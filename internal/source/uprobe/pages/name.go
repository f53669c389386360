package pages

import "strings"

// maxName is how much of a name is kept, as in a ledger.
const maxName = 92

// nameInPath is the operation that the source of a kernel belongs to:
// "…/operations/eltwise/binary_ng/device/kernels/x.cpp" is eltwise/binary_ng.
// Others are named by their file.
func nameInPath(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if _, rest, ok := strings.Cut(path, "/operations/"); ok {
		op, _, found := strings.Cut(rest, "/device/")
		if !found {
			op, _, found = strings.Cut(rest, "/kernels/")
		}
		if found && op != "" {
			name = op
		}
	}
	return name[:min(len(name), maxName)]
}
