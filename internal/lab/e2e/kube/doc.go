// Package kube holds what ttmon says to Kubernetes, and is told by it, against
// Kubernetes' own modules: the kubelet's API, the types of the API server, kustomize
// and Helm. It is a module of its own (make test-kube), so that none of them gets
// into ttmon's.
package kube
