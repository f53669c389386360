//go:build !amd64 && !arm64

package preload

// library is empty where tt-metal does not run.
var library []byte
