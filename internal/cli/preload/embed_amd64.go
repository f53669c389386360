package preload

import _ "embed"

//go:embed libttmon-amd64.so
var library []byte
