package filewatch

import (
	"errors"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// systemHints are the hints of the operating system. Without them every folder is polled.
func systemHints(tell, gone func(path string)) hinter {
	w, err := fsnotify.NewBufferedWatcher(256)
	if err != nil {
		return silent{err}
	}
	h := &hints{w: w}
	h.done.Go(func() {
		for {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
					gone(e.Name)
				}
				if e.Op != fsnotify.Chmod {
					tell(e.Name)
				}
			case _, ok := <-w.Errors:
				if !ok {
					return
				}
				// Hints were lost: the next check without a hint finds the changes.
			}
		}
	})
	return h
}

type hints struct {
	w    *fsnotify.Watcher
	done sync.WaitGroup
}

func (h *hints) add(dir string) error { return h.w.Add(dir) }

func (h *hints) remove(dir string) { _ = h.w.Remove(dir) } // a removed folder is no longer watched

func (h *hints) close() {
	_ = h.w.Close() // there is nothing to lose
	h.done.Wait()
}

// silent has no hints.
type silent struct{ err error }

func (s silent) add(string) error {
	return errors.Join(errors.New("the system tells no changes"), s.err)
}
func (s silent) remove(string) {}
func (s silent) close()        {}
