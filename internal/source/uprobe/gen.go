package uprobe

//go:generate go tool -modfile=../../../tools/bpf/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -type process watch bpf/watch.c -- -O2 -Wall -Werror
