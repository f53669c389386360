// Package image tests the container image under a real runtime: podman with runc,
// next to a simulated host. Its test is behind the build tag container (make
// test-container): it makes the image first, and needs root and podman.
package image
