// Socketclient is client.c in Go: it reports what it allocates over ttmond's allocation
// socket. Its argument is the number of a device, which it has open. It holds its
// memory until its standard input ends.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Pools, as tt-metal numbers them.
const (
	dram = 0
	l1   = 1
)

// report makes a message of 144 bytes; kind is 1 for allocated, 2 for freed.
func report(kind byte, device int32, pool byte, address, size uint64) []byte {
	m := make([]byte, 144)
	m[0], m[16] = kind, pool
	binary.LittleEndian.PutUint32(m[4:], uint32(device))
	binary.LittleEndian.PutUint64(m[8:], size)
	binary.LittleEndian.PutUint32(m[20:], uint32(os.Getpid()))
	binary.LittleEndian.PutUint64(m[24:], address)
	binary.LittleEndian.PutUint64(m[32:], uint64(time.Now().UnixNano()))
	return m
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "socketclient:", err)
		os.Exit(1)
	}
}

func run() error {
	device := "0"
	if len(os.Args) > 1 {
		device = os.Args[1]
	}
	chip, err := os.OpenFile("/dev/tenstorrent/"+device, os.O_RDWR, 0) // as a program on tt-metal has
	if err != nil {
		return err
	}
	defer chip.Close()
	path := os.Getenv("ALLOC_SOCKET")
	if path == "" {
		path = "/tmp/tt_allocation_server.sock"
	}
	server, err := net.Dial("unix", path)
	if err != nil {
		return fmt.Errorf("no ttmond listens: %w", err)
	}
	defer server.Close()
	for _, m := range [][]byte{
		report(1, 0, dram, 0x100000, 512<<20),
		report(1, 0, l1, 0x2000, 4<<20),
		report(1, 0, l1, 0x800000, 4<<20),
		report(2, 0, 0, 0x800000, 0),
	} {
		if _, err := server.Write(m); err != nil {
			return err
		}
	}
	fmt.Println("512 MiB of DRAM and 4 MiB of L1")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
