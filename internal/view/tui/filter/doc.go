// Package filter is the small language of the filter line:
//
//	user=root dram>1G device=3 cmd~llama
//	(user=alice or user=bob) and not time<1h
//
// Terms side by side must all hold; "and", "or", "not" and parentheses do what
// they say. "=" compares whole values and knows "*" and lists ("user=root,al*",
// "device=0-3"), "~" searches with a regular expression, a word alone is
// searched for in everything that is text. Numbers take units: 1G is a GiB,
// 1GB is 10⁹ bytes, 90s 5m 2h 3d are lengths of time. "field=?" finds rows
// whose value is not known; no other comparison matches those.
//
// It stands inside the process table and knows nothing of processes: the
// table says which fields there are and what a row holds in them. Errors name
// the column, for the line they were typed in.
package filter
