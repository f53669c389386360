module github.com/ttmon/ttmon/lab

go 1.26.0

require (
	github.com/ttmon/ttmon v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.49.0
)

require github.com/rivo/uniseg v0.4.7 // indirect

replace github.com/ttmon/ttmon => ../
