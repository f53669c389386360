//go:build !web

package web

import "time"

const limit = 45 * time.Minute
