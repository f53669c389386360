// Package thanos tests ttmond and ttmon fleet with a real Thanos: its test is
// behind the build tag thanos (make test-thanos), since building Thanos takes
// minutes. The module in build/ pins it.
package thanos
