package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/handover"
)

// stop ends the daemon. Nobody's connection is closed: an old client would die
// of it at its next report. systemd keeps the connections if it can, and
// otherwise a process of ours does.
func (d *ttmond) stop() error {
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
	defer d.server.Close()
	if handover.StoreOutlivesStop() {
		return d.storeAll()
	}
	d.unlink()
	d.server.Retire()
	clients := d.server.Stats().Connections
	switch {
	case clients == 0:
		return nil
	case d.cfg.keep || !d.cfg.Alloc.Keeper:
		d.log.Warn("connections are closed; old clients may die at their next report", "connections", clients)
		return nil
	}
	pid, err := d.leaveKeeper()
	if err != nil {
		return fmt.Errorf("leaving a process behind that keeps %d connections: %w", clients, err)
	}
	d.log.Info("clients are still connected; a process keeps their connections until they end or ttmond starts again",
		"connections", clients, "pid", pid)
	return nil
}

// storeAll gives everything to systemd.
func (d *ttmond) storeAll() error {
	files, memfds, err := d.files()
	if err != nil {
		return err
	}
	defer func() {
		for _, fd := range memfds {
			unix.Close(fd)
		}
	}()
	var keep []handover.File
	for _, f := range files {
		switch f.Name {
		case nameClient, nameState, nameLedger:
			keep = append(keep, f)
		}
	}
	_ = handover.Forget(nameClient) // those that were stored one by one
	if err := handover.Store(keep); err != nil {
		return err
	}
	return handover.Barrier(5 * time.Second)
}

// unlink removes the sockets that are ours, so that new clients see that
// nobody serves. The lock is still ours.
func (d *ttmond) unlink() {
	_ = os.Remove(handoverPath(d.cfg))
	if d.cfg.keep {
		return
	}
	if !d.begun.allocActivated {
		_ = os.Remove(d.cfg.Alloc.Socket)
	}
	if !d.begun.apiActivated {
		_ = os.Remove(d.cfg.API.Socket)
	}
}

// keeperPatience is how long a keeper may take to start.
const keeperPatience = 10 * time.Second

// leaveKeeper starts a keeper and hands everything but the listening sockets
// to it.
func (d *ttmond) leaveKeeper() (pid int, err error) {
	for _, fd := range []*int{&d.begun.alloc, &d.begun.api, &d.begun.apiLock} {
		*fd = -1 // the server closes its own
	}
	l, err := handover.Listen(handoverPath(d.cfg))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_ = l.SetDeadline(time.Now().Add(keeperPatience))
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, "--keep", "--alloc-socket", d.cfg.Alloc.Socket, "--socket", d.cfg.API.Socket, "--state-dir", d.cfg.StateDir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	defer cmd.Process.Release()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return pid, err
		}
		err = handover.Greet(conn, handover.Hello{Keeper: true})
		if err == nil {
			err = d.give(conn)
		}
		conn.Close()
		if err == nil {
			return pid, nil
		}
		d.log.Warn("the keeper did not take over", "err", err)
	}
}
