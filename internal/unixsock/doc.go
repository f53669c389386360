// Package unixsock makes Unix sockets that belong to one server at a time,
// safely even in a directory like /tmp where everybody may write.
//
// It stands beside the data flow: the daemon makes its sockets with it.
package unixsock
