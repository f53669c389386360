// Package field is the room of what there is to show and how it is called: each value,
// kind and sentence once, as a row of a table. Snapshots and what collect judges of them
// enter; values with headings, formats, words and JSON leave, for every view. It imports
// neither view nor any room that runs something.
package field
