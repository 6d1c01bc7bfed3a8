package wal

import "io"

// FS is what a log needs of a file system: the files of one folder. It is safe for concurrent use. Names have no
// separators.
type FS interface {
	// Create makes a file for writing and reading, or empties the one that is there.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// List is the names of all files, in any order.
	List() ([]string, error)
	// Rename replaces the file that has the new name, if there is one. It is durable after SyncFolder.
	Rename(from, to string) error
	// Remove is durable after SyncFolder.
	Remove(name string) error
	// SyncFolder makes durable which files there are.
	SyncFolder() error
	// Lock keeps other processes from opening the log, until it is closed. Its error is [ErrLocked] if one has it open.
	Lock() (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Truncate shortens the file.
	Truncate(size int64) error
	// Sync makes durable what was written, and the file's size.
	Sync() error
	// SyncData makes durable what was written within the size that was synced.
	SyncData() error
}
