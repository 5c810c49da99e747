//go:build tools

// Package helm names the program hack/provision builds, so that `go mod tidy` keeps what it needs.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
