// Package bench holds no code, only benchmarks: what the released programs cost, each
// next to a floor or a peer that is measured in the same run. The machines that they
// run on are noisy, ratios are not. `make bench` runs them.
package bench
