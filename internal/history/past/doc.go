// Package past keeps whole snapshots of the last day, so that a screen can
// show devices and processes as they were.
//
// It stands beside the numbers (history/disk) and the events: ttmond puts a
// snapshot in every ten seconds and at every event, as its JSON, compressed;
// the API answers with the one that held at a given time. Files are appended
// to and dropped as a whole when they are old. Only ttmond links this package.
package past
