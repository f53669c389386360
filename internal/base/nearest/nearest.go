// Package nearest finds the word that was probably meant, for the messages
// about words that are not known. It is below the data flow: any package that
// reads what people type may use it.
package nearest

// Word is the known word that was probably meant, or "" where none comes near: within a third of its length in edits (two in a word of four letters),
// or sharing a long beginning.
func Word(word string, known []string) string {
	near := max(2, len(word)/3)
	if len(word) < 4 {
		near = 1 // "foo" does not mean "top"
	}
	best, bestDistance := "", near+1
	for _, k := range known {
		d := distance(word, k)
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, k := range known { // "power" for "power.draw"
		if len(k) > len(word) && k[:len(word)] == word {
			return k
		}
	}
	return ""
}

// Suggest is the end of a message about a word that is not known: the word that
// was probably meant, or else where to look.
func Suggest(word string, known []string, otherwise string) string {
	if w := Word(word, known); w != "" {
		return "; did you mean " + w + "?"
	}
	return "; " + otherwise
}

// distance is the number of edits between a and b: letters put in, left out,
// replaced, or two neighbours swapped.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
