//go:build unix

package regular

import "syscall"

// openFlags: a FIFO is not waited for, and no terminal becomes ours.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
