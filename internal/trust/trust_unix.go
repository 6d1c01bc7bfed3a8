//go:build unix

package trust

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// OpenFlags are those with which opening never follows a link in the last place, and never waits for the other
// end of a FIFO.
const OpenFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// PrivateFile refuses a file that others own, or can read or write.
func PrivateFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if int(st.Uid) != Self {
		return fmt.Errorf("%s belongs to %s, not to %s: remove it, or name another file", f.Name(), Owner(st.Uid), Owner(uint32(Self)))
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o, so that others may know what is in it: remove it, and a new one is made with mode 0600", f.Name(), info.Mode().Perm())
	}
	return nil
}

// Single reports whether no other name leads to the file.
func Single(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink <= 1
}

// Folder checks a folder and all that lead to it, links included: each belongs to the user or to
// root, and no other user can write to it. Others may write to a parent with the sticky bit, such
// as /tmp, because they cannot rename there what is not theirs. It returns the folder's real path.
// Should a folder be missing the error is fs.ErrNotExist; those above it were checked.
func Folder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at, left := "/", strings.Split(path, "/")
	sealed := false // no one else can come as far as here
	for links := 0; ; {
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return "", fmt.Errorf("%s: its owner is unknown", at)
		}
		if st.Uid != 0 && int(st.Uid) != Self {
			return "", fmt.Errorf("%s belongs to %s, not to %s or root, so what is in it cannot be trusted: use another folder, or make one that is yours", at, Owner(st.Uid), Owner(uint32(Self)))
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > 40 {
				return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
			}
			to, err := os.Readlink(at)
			if err != nil {
				return "", err
			}
			left = append(strings.Split(to, "/"), left...)
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at, sealed = "/", false
			}
			continue
		}
		if !info.IsDir() {
			return "", &fs.PathError{Op: "open", Path: at, Err: ErrNotFolder}
		}
		for len(left) > 0 && (left[0] == "" || left[0] == ".") {
			left = left[1:]
		}
		last := len(left) == 0
		if !sealed && writable(info, st, last) {
			return "", fmt.Errorf("%s belongs to %s and others can write to it (mode %#o), so what is in it cannot be trusted: chmod go-w %s, or use another folder", at, Owner(st.Uid), info.Mode().Perm(), at)
		}
		sealed = sealed || int(st.Uid) == Self && info.Mode().Perm()&0o077 == 0
		if last {
			return at, nil
		}
		if left[0] == ".." {
			at, sealed = filepath.Dir(at), false
		} else {
			at = filepath.Join(at, left[0])
		}
		left = left[1:]
	}
}

// writable reports whether others can put something into a folder, and, if it is
// not the last, take away what is in it.
func writable(info fs.FileInfo, st *syscall.Stat_t, last bool) bool {
	open := info.Mode().Perm() & 0o022
	if open == 0o020 && PrivateGroup(st.Gid) {
		open = 0
	}
	return open != 0 && (last || info.Mode()&fs.ModeSticky == 0)
}

// PrivateGroup reports whether a group is the user's alone, as many systems make
// one for each user. One that is not in /etc/group is not.
func PrivateGroup(gid uint32) bool {
	me, err := user.LookupId(strconv.Itoa(Self))
	if err != nil || me.Gid != strconv.FormatUint(uint64(gid), 10) {
		return false
	}
	f, err := os.Open("/etc/group")
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		g := strings.Split(lines.Text(), ":") // name:password:gid:members
		if len(g) == 4 && g[2] == me.Gid {
			members := strings.FieldsFunc(g[3], func(r rune) bool { return r == ',' })
			return g[0] == me.Username && !slices.ContainsFunc(members, func(m string) bool { return m != me.Username })
		}
	}
	return false
}

// Owner is a user's name, and number.
func Owner(uid uint32) string {
	text := "user " + strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		text = u.Username + " (" + text + ")"
	}
	return text
}
