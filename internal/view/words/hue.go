package words

import "fmt"

// hues are the colours that tell things apart, as a terminal has them. All beyond
// share the last one.
var hues = []int{36, 33, 35, 32, 34, 31, 96, 93}

// Hue is the sequence that begins the colour of the nth thing, from 1; 0 ends it.
func Hue(n int) string {
	if n == 0 {
		return "\x1b[0m"
	}
	return fmt.Sprintf("\x1b[%dm", hues[min(n, len(hues))-1])
}
