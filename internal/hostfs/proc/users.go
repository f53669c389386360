package proc

import (
	"bytes"
	"strconv"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// userNames gives names to user ids, from the /etc/passwd of the host that is
// watched. os/user would use our own host's (and, with cgo, its network
// directory). Only the ids needed are searched: that is cheaper than parsing a
// file of thousands of users.
type userNames struct {
	root  hostfs.Root
	stamp stamp
	file  []byte
	names map[int]string
	full  map[int]string
}

// stamp identifies an unchanged file.
type stamp struct {
	ino          uint64
	size         int64
	sec, nanosec int64
}

func stampOf(root hostfs.Root, path string) (stamp, error) {
	st, err := root.Stat(path)
	return stamp{st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec}, err
}

// maxPasswd bounds what a damaged or hostile file can cost.
const maxPasswd = 8 << 20

// refresh reads the file again if it has changed. It is called once per sweep.
func (u *userNames) refresh() {
	s, err := stampOf(u.root, "/etc/passwd")
	if err == nil && s == u.stamp {
		return
	}
	u.stamp, u.names, u.full, u.file = s, map[int]string{}, map[int]string{}, nil
	if err == nil {
		u.file, _ = u.root.Read("/etc/passwd", maxPasswd)
	}
}

// name returns the name of uid, or its number where no name is known.
func (u *userNames) name(uid int) string {
	if name, ok := u.names[uid]; ok {
		return name
	}
	name, full, ok := findUser(u.file, uid)
	if !ok {
		name = strconv.Itoa(uid)
	}
	if u.names == nil {
		u.names, u.full = map[int]string{}, map[int]string{}
	}
	u.names[uid], u.full[uid] = name, full
	return name
}

// fullName returns a user's full name: the first part of the comment field;
// empty where there is none.
func (u *userNames) fullName(uid int) string {
	u.name(uid)
	return u.full[uid]
}

// findUser searches "name:password:uid:…" lines; the first match counts, as
// it does for getpwuid.
func findUser(passwd []byte, uid int) (name, full string, ok bool) {
	want := strconv.Itoa(uid)
	for line := range bytes.Lines(passwd) {
		user, rest, ok := bytes.Cut(line, []byte{':'})
		if !ok || len(user) == 0 || user[0] == '#' || user[0] == '+' || user[0] == '-' {
			continue
		}
		_, rest, _ = bytes.Cut(rest, []byte{':'})
		id, rest, ok := bytes.Cut(rest, []byte{':'})
		if ok && string(id) == want {
			_, rest, _ = bytes.Cut(rest, []byte{':'}) // the group
			comment, _, _ := bytes.Cut(rest, []byte{':'})
			person, _, _ := bytes.Cut(comment, []byte{','})
			return string(user), string(bytes.TrimSpace(person[:min(len(person), 100)])), true
		}
	}
	return "", "", false
}
