// Package httpguard protects an HTTP server from clients that mean harm: web
// pages of other origins, and connections that are opened and never used.
//
// It stands in front of whatever is served over TCP. It decides on connections
// and on headers only; what a request costs is bounded by those who answer it.
package httpguard
