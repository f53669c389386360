package metalabi

import "fmt"

// AppendSymbols appends lib/src/symbols.h: a row for each function of libttmon.
func AppendSymbols(dst []byte) []byte {
	dst = append(dst, `/* Written by internal/source/metalabi (go test -update there): the functions of
 * tt-metal that are followed or called; our name for them, theirs, and whether
 * an allocator without it could not be followed. */
`...)
	for _, f := range Followed() {
		if f.Library != Unused {
			dst = fmt.Appendf(dst, "X(%s, %q, %v)\n", f.Name, f.Symbol(), f.Library == Required)
		}
	}
	return dst
}

// AppendNames appends lib/src/names.h: the names under which libttmon's own
// functions take the place of tt-metal's.
func AppendNames(dst []byte) []byte {
	dst = append(dst, `/* Written by internal/source/metalabi (go test -update there): tt-metal's names of the
 * functions that are followed. */
#ifndef TTMON_NAMES_H
#define TTMON_NAMES_H

`...)
	for _, f := range Followed() {
		if f.Library == Required || f.Library == Optional {
			dst = fmt.Appendf(dst, "#define METAL_%s %s\n", f.Name, f.Symbol())
		}
	}
	return append(dst, "\n#endif\n"...)
}
