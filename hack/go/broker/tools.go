//go:build tools

// Package broker names the program hack/provision builds, so that `go mod tidy` keeps what it needs.
package broker

import _ "github.com/mochi-mqtt/server/v2/cmd"
