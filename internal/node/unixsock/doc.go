// Package unixsock creates Unix sockets that belong to one server at a time,
// safely even in a directory like /tmp that every user may write to. The daemon
// creates its sockets with it.
package unixsock
