// Package unixhttp serves HTTP/1.1 on Unix sockets without net/http.
//
// ttmond runs as root and listens on Unix sockets only, so it has no use for
// TLS, HTTP/2, cookies or redirects; net/http links all of them, a quarter of the
// program. What is here is the rest: requests with a head of bounded size and a
// body of known length, answers with a length or in chunks, connections that stay
// open, and a context that ends when the client leaves. curl --unix-socket and
// net/http's own client are the peers that the tests use.
//
// The handlers of internal/api are written against these types. ttmon-server,
// which serves them over TCP as well, wraps them with unixhttp/nethttp.
package unixhttp
