package main

import "github.com/ttmon/ttmon/internal/sim/workload"

// kinds are the kinds of workload that ttmon-sim offers.
func kinds() workload.Kinds { return workload.Kinds{} }
