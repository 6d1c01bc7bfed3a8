// Package crashfs is a file system in memory for tests of what must survive crashes. It records what is done to it,
// and makes what a disk could hold if the power had failed after any part of that.
package crashfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/internal/wal"
)

// FS implements wal.FS. It is safe for concurrent use.
type FS struct {
	mu     sync.Mutex
	names  map[string]*node
	ops    []op
	made   int
	fail   func(n int, what string) error
	calls  int
	locked bool
}

type node struct {
	id   int
	data []byte
}

type kind uint8

const (
	create kind = iota
	write
	truncate
	rename
	remove
	syncFile
	syncData
	syncFolder
)

type op struct {
	kind     kind
	id       int
	name, to string
	at       int64
	data     []byte
}

// New is an empty file system.
func New() *FS { return &FS{names: map[string]*node{}} }

// Fail has every later call ask f whether it fails; n counts them from 0. Nil: none does.
func (f *FS) Fail(fail func(n int, what string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.calls = fail, 0
}

// Calls is how many calls there have been since Fail.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Done is how many changes there have been.
func (f *FS) Done() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ops)
}

// Rare reports whether the change after so many is one of names, sizes or a sync, and no write.
func (f *FS) Rare(changes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return changes < len(f.ops) && f.ops[changes].kind != write
}

// failing counts a call; the caller holds the lock.
func (f *FS) failing(what string) error {
	f.calls++
	if f.fail == nil {
		return nil
	}
	return f.fail(f.calls-1, what)
}

func (f *FS) do(o op) { f.ops = append(f.ops, o) }

// Bytes are a file's.
func (f *FS) Bytes(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.names[name].data)
}

// Put makes a file durable that has such bytes.
func (f *FS) Put(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	n := &node{id: f.made, data: slices.Clone(data)}
	f.names[name] = n
	f.do(op{kind: create, id: n.id, name: name})
	f.do(op{kind: write, id: n.id, data: slices.Clone(data)})
	f.do(op{kind: syncFile, id: n.id})
	f.do(op{kind: syncFolder})
}

// Copy is a file system with the same files, all of them durable.
func (f *FS) Copy() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := New()
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		c.Put(name, f.names[name].data)
	}
	return c
}

// Create implements wal.FS.
func (f *FS) Create(name string) (wal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("create"); err != nil {
		return nil, err
	}
	f.made++
	n := &node{id: f.made}
	f.names[name] = n
	f.do(op{kind: create, id: n.id, name: name})
	return &file{fs: f, node: n}, nil
}

// Open implements wal.FS.
func (f *FS) Open(name string) (wal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("open"); err != nil {
		return nil, err
	}
	n := f.names[name]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{fs: f, node: n}, nil
}

// List implements wal.FS.
func (f *FS) List() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("list"); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(f.names)), nil
}

// Rename implements wal.FS.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("rename"); err != nil {
		return err
	}
	n := f.names[from]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	delete(f.names, from)
	f.names[to] = n
	f.do(op{kind: rename, name: from, to: to})
	return nil
}

// Remove implements wal.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("remove"); err != nil {
		return err
	}
	if f.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(f.names, name)
	f.do(op{kind: remove, name: name})
	return nil
}

// SyncFolder implements wal.FS.
func (f *FS) SyncFolder() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("sync folder"); err != nil {
		return err
	}
	f.do(op{kind: syncFolder})
	return nil
}

// Lock implements wal.FS.
func (f *FS) Lock() (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locked {
		return nil, wal.ErrLocked
	}
	f.locked = true
	return unlock{f}, nil
}

type unlock struct{ fs *FS }

func (u unlock) Close() error {
	u.fs.mu.Lock()
	defer u.fs.mu.Unlock()
	u.fs.locked = false
	return nil
}

type file struct {
	fs   *FS
	node *node
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.failing("read"); err != nil {
		return 0, err
	}
	if at >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.failing("write"); err != nil {
		return 0, err
	}
	f.node.data = put(f.node.data, b, at)
	f.fs.do(op{kind: write, id: f.node.id, at: at, data: slices.Clone(b)})
	return len(b), nil
}

func put(data, b []byte, at int64) []byte {
	if grow := int(at) + len(b) - len(data); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[at:], b)
	return data
}

func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.node.data)), f.fs.failing("size")
}

func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.failing("truncate"); err != nil {
		return err
	}
	f.node.data = f.node.data[:size]
	f.fs.do(op{kind: truncate, id: f.node.id, at: size})
	return nil
}

func (f *file) Sync() error { return f.sync(syncFile, "sync") }

func (f *file) SyncData() error { return f.sync(syncData, "sync data") }

func (f *file) sync(k kind, what string) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.failing(what); err != nil {
		return err
	}
	f.fs.do(op{kind: k, id: f.node.id})
	return nil
}

func (f *file) Close() error { return nil }

// sector is the least that a disk writes.
const sector = 512

// disk is what a disk holds, and what it may hold later.
type disk struct {
	names map[string]int
	meta  []op // of names, in order
	files map[int]*onDisk
}

type onDisk struct {
	data []byte
	late []op
}

// After is what the disk may hold when the power fails after so many changes: of what was not synced, names change in
// order, to some point; of what was written each sector is there, is not, or has a part of the new bytes, at its
// beginning or its end.
func (f *FS) After(changes int, dice *rand.Rand) *FS {
	f.mu.Lock()
	ops := slices.Clone(f.ops[:changes])
	f.mu.Unlock()
	d := disk{names: map[string]int{}, files: map[int]*onDisk{}}
	for _, o := range ops {
		d.do(o)
	}
	for _, o := range d.meta[:dice.IntN(len(d.meta)+1)] {
		d.name(o)
	}
	for _, id := range slices.Sorted(maps.Keys(d.files)) {
		x := d.files[id]
		for _, o := range x.late {
			x.maybe(o, dice)
		}
	}
	after := New()
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		after.Put(name, d.files[d.names[name]].data)
	}
	return after
}

func (d *disk) do(o op) {
	x := d.files[o.id]
	switch o.kind {
	case create:
		d.files[o.id] = &onDisk{}
		d.meta = append(d.meta, o)
	case rename, remove:
		d.meta = append(d.meta, o)
	case syncFolder:
		for _, o := range d.meta {
			d.name(o)
		}
		d.meta = nil
	case write, truncate:
		x.late = append(x.late, o)
	case syncFile:
		for _, o := range x.late {
			x.apply(o)
		}
		x.late = nil
	case syncData:
		// What lies beyond the size that was synced is not made durable by it.
		x.late = slices.DeleteFunc(x.late, func(o op) bool {
			within := o.kind == write && int(o.at)+len(o.data) <= len(x.data)
			if within {
				x.apply(o)
			}
			return within
		})
	}
}

func (d *disk) name(o op) {
	switch o.kind {
	case create:
		d.names[o.name] = o.id
	case rename:
		d.names[o.to] = d.names[o.name]
		delete(d.names, o.name)
	case remove:
		delete(d.names, o.name)
	}
}

func (x *onDisk) apply(o op) {
	if o.kind == truncate {
		x.data = x.data[:min(int(o.at), len(x.data))]
		return
	}
	x.data = put(x.data, o.data, o.at)
}

func (x *onDisk) maybe(o op, dice *rand.Rand) {
	if o.kind == truncate {
		if dice.IntN(2) == 0 {
			x.apply(o)
		}
		return
	}
	all := dice.IntN(4)
	for i := 0; i < len(o.data); {
		n := min(sector-int(o.at+int64(i))%sector, len(o.data)-i)
		part, at := o.data[i:i+n], o.at+int64(i)
		i += n
		switch c := dice.IntN(4); {
		case all == 0 || all > 1 && c == 0: // not there
		case all == 1 || c == 1:
			x.data = put(x.data, part, at)
		case c == 2:
			x.data = put(x.data, part[:dice.IntN(n)], at)
		default:
			from := dice.IntN(n)
			x.data = put(x.data, part[from:], at+int64(from))
		}
	}
}

// Flip changes a bit of a file.
func (f *FS) Flip(name string, bit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name].data[bit/8] ^= 1 << (bit % 8)
}

// String lists the files with their sizes.
func (f *FS) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := ""
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		s += fmt.Sprintf("%s %d\n", name, len(f.names[name].data))
	}
	return s
}
