// Package assess decides what is wrong with a host: the conditions of its
// devices, its processes and itself, how much each matters, since when it
// holds, by which facts, and what to do about it.
//
// It is the only package that decides this. Every view, check, event, alert
// rule and node condition asks it, and has no threshold, no ranking and no
// rule of colour of its own: internal/lab/laws checks that.
//
// A Judge assesses the snapshots of a host one after the other, and so knows
// since when a condition holds, and that a value which was off for one sample
// is no condition yet. collect has one: the snapshots of ttmond, of ttmon top
// and of every other command that runs for a while come assessed, and keep
// what was found when they are sent, recorded and stored. Of is for views: it
// returns what a snapshot carries, or assesses it itself if that was not done.
//
// To add a condition: a kind in model, a place in ranking, a rule in rules,
// its words in words.
package assess
