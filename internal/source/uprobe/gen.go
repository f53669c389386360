package uprobe

//go:generate go tool -modfile=../../../tools/bpf/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -type event_kind -type event -type object_event -type list_event -type take_event -type change_event -type block_event -type whole_event -type provider_event -type record_event -type layout_event -type no_room_event -type clash_event -type frame -type failed -type python -type work_event -type batch_kind -type batch -type names -type exit_event -type fork_event -type process -type user watch bpf/watch.c -- -O2 -Wall -Werror -fno-strict-aliasing
