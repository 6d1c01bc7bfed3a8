package natscluster

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// localFolders are file systems whose locks are the kernel's own. On others, such as NFS, a lock may be lost while its process lives.
var localFolders = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
	0xca451a4e, // bcachefs
}

// whereOf is the place of a lock on a file.
func whereOf(f *os.File) (where, bool) {
	var fs unix.Statfs_t
	var file unix.Stat_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || !slices.Contains(localFolders, int64(fs.Type)) || unix.Fstat(int(f.Fd()), &file) != nil {
		return where{}, false
	}
	boot, err := regular.ReadFile("/proc/sys/kernel/random/boot_id", 64)
	w := where{Boot: strings.TrimSpace(string(boot)), Inode: fmt.Sprintf("%d:%d", uint64(file.Dev), file.Ino)}
	return w, err == nil && w.Boot != ""
}
