// Package truth holds ttmon against the truth. It holds no code, only tests:
// scenarios in which the real ttnn or scripted tt-metal processes do something
// on a simulated host, and a row for each figure that the real binaries then
// show: what is so, what ttmon says, and what that is worth.
//
//	right    equal, without a mark or with one
//	bounded  "≥ n" and the truth is no less, or "~ n"; a doubt says why
//	missing  no number, and a doubt or a status says why
//	WRONG    anything else; the test fails
//
// make truth runs all and prints the table; go test runs the fast ones. What
// is so is what the program itself accounts for (and ttnn.get_memory_view
// does not contradict), or what the simulator has made of its chips.
//
// docs/truth.md says which scenario or test keeps which promise.
package truth
