// Package sorted sorts lists of structs. slices.SortFunc makes 15 to 28 kB of code
// for each type of element; there are thirty of them in ttmond alone, which is a
// tenth of it. It is for lists of some hundred elements; where a sort is hot, or
// elements are pointers or numbers, package slices is better.
package sorted

import "sort"

// By sorts a list. Equal elements may change places.
func By[T any](list []T, compare func(a, b *T) int) {
	sort.Slice(list, func(i, j int) bool { return compare(&list[i], &list[j]) < 0 })
}

// Stable sorts a list, and leaves equal elements as they are.
func Stable[T any](list []T, compare func(a, b *T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(&list[i], &list[j]) < 0 })
}
