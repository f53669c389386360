//go:build tools

// Package build pins the Thanos that make test-thanos runs.
package build

import _ "github.com/thanos-io/thanos/cmd/thanos"
