package prom

import (
	"iter"
	"strings"
)

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// Labels reads the text between the braces, as Emit gets it.
func Labels(text string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for text != "" {
			key, rest, ok := strings.Cut(text, `="`)
			if !ok {
				return
			}
			end := 0
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(rest))
			if !yield(key, unescape.Replace(rest[:end])) {
				return
			}
			text = strings.TrimPrefix(rest[min(end+1, len(rest)):], ",")
		}
	}
}
