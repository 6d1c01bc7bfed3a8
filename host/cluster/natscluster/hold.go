package natscluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
)

// Files of a node's folder that say which life was the last one here.
const (
	fileHold = "life.lock"
	fileLife = "life.json"
)

// Hold is a process's hold on the folder of a node. It is a lock that the operating system takes back when the process has ended, however
// it has ended, and a note of the life that has had it. So the next process knows that this life is over. Its methods may be called by any
// goroutine.
type Hold struct {
	dir  string
	over uint64

	mu    sync.Mutex
	lock  *flock.Flock // nil: another process has it, or it would prove nothing here
	where where
}

// where is the place at which a lock proves something: the lock of one file, on one machine, since its last start. A copy of the folder is
// another file, and another machine, also one that has the same folder by a network, was started another time.
type where struct {
	Boot  string `json:"boot"`
	Inode string `json:"inode"`
}

// lifeNote is the contents of fileLife.
type lifeNote struct {
	Where where  `json:"where"`
	ID    uint64 `json:"id,string"` // see cluster.Config.ID
}

// Hold takes the folder, if no other process has it. Without it, and where locks prove nothing (on network file systems, and on systems other
// than Linux and macOS), the node works as with it, but that its start waits until the lease of the life before is over.
func (id *Identity) Hold() *Hold { return holdOf(id.dir, whereOf) }

func holdOf(dir string, whereOf func(*os.File) (where, bool)) *Hold {
	h := &Hold{dir: dir}
	lock := flock.New(filepath.Join(dir, fileHold), flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return h
	}
	if f, err := os.Open(lock.Path()); err == nil {
		at, proves := whereOf(f)
		if f.Close() == nil && proves {
			h.lock, h.where = lock, at
			h.over = h.last()
			return h
		}
	}
	_ = lock.Unlock() // it is worth nothing
	return h
}

// last is the life that the folder names, if this lock has been its.
func (h *Hold) last() uint64 {
	b, err := (&Identity{dir: h.dir}).read(fileLife)
	var n lifeNote
	if err != nil || json.Unmarshal(b, &n) != nil || n.Where != h.where {
		return 0
	}
	return n.ID
}

// Over is the life of this node that is over for certain, since its process has ended; 0 if that is not known.
func (h *Hold) Over() uint64 { return h.over }

// Begins notes the life that begins, before it takes a number. Without the lock nothing is noted.
func (h *Hold) Begins(id uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lock == nil {
		return nil
	}
	b, err := json.Marshal(lifeNote{h.where, id})
	if err != nil {
		return err
	}
	path := filepath.Join(h.dir, fileLife)
	err = os.WriteFile(path+".new", append(b, '\n'), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path) // a loss of power needs no sync: the machine starts anew then
	}
	if err != nil {
		return fmt.Errorf("natscluster: this life of the node cannot be noted in its folder, so its next start waits for the lease: %w", err)
	}
	return nil
}

// Close gives the folder back. What the process does as the node must have ended. It may be called on nil.
func (h *Hold) Close() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lock == nil {
		return nil
	}
	err := h.lock.Unlock()
	h.lock = nil
	return err
}
