package preload

import _ "embed"

//go:embed libttmon-arm64.so
var library []byte
