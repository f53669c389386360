package text

import (
	"strconv"
	"unicode/utf8"
)

// The official tool prints its JSON with Python: four blanks of indentation,
// keys in the order of insertion, nothing but ASCII. Scripts compare such files
// as text, so this is written the same way.

// object is a JSON object that keeps its order.
type object []member

type member struct {
	key   string
	value any // nil, bool, int, string, object or []any
}

func (o *object) add(key string, value any) { *o = append(*o, member{key, value}) }

func appendPython(dst []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case string:
		return appendASCII(dst, v)
	case object:
		if len(v) == 0 {
			return append(dst, "{}"...)
		}
		dst = append(dst, '{')
		for i, m := range v {
			dst = separate(dst, i, depth+1)
			dst = append(appendASCII(dst, m.key), ": "...)
			dst = appendPython(dst, m.value, depth+1)
		}
		return append(separate(dst, 0, depth), '}')
	case []any:
		if len(v) == 0 {
			return append(dst, "[]"...)
		}
		dst = append(dst, '[')
		for i, item := range v {
			dst = separate(dst, i, depth+1)
			dst = appendPython(dst, item, depth+1)
		}
		return append(separate(dst, 0, depth), ']')
	default:
		panic("BUG: a value that JSON does not have")
	}
}

// separate goes to a new line, with a comma before it between items.
func separate(dst []byte, i, depth int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, "    "...)
	}
	return dst
}

func appendASCII(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r >= ' ' && r < 0x7f:
			dst = append(dst, byte(r))
		case r == utf8.RuneError || r < 0x10000:
			dst = appendUnicode(dst, uint16(r))
		default:
			r -= 0x10000
			dst = appendUnicode(appendUnicode(dst, 0xd800|uint16(r>>10)), 0xdc00|uint16(r&0x3ff))
		}
	}
	return append(dst, '"')
}

func appendUnicode(dst []byte, v uint16) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[v>>12], hex[v>>8&0xf], hex[v>>4&0xf], hex[v&0xf])
}
