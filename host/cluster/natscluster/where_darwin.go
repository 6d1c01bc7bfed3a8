package natscluster

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// whereOf is the place of a lock on a file.
func whereOf(f *os.File) (where, bool) {
	var fs unix.Statfs_t
	var file unix.Stat_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || fs.Flags&unix.MNT_LOCAL == 0 || unix.Fstat(int(f.Fd()), &file) != nil {
		return where{}, false
	}
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	return where{Boot: boot, Inode: fmt.Sprintf("%d:%d", file.Dev, file.Ino)}, err == nil && boot != ""
}
