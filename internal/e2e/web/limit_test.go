//go:build !web

package web

import "time"

const limit = 25 * time.Minute
