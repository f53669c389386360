//go:build !web

package web

import "time"

const limit = 8 * time.Minute
