// Package cli is the room of what commands do that take more than a page; cmd/ttmon has
// their flags. It may import every room but lab, and only cmd imports it.
package cli
