//go:build !web

package web

import "time"

const limit = 4 * time.Minute
