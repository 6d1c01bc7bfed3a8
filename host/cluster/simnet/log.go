package simnet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// history is the replicated log of a world: what each subject has, in one order. Readers may get a copy that is behind.
type history struct {
	subjects map[string][]cluster.LogEntry
	last     uint64
	full     bool
	behind   []func() // what the second copy has not yet
	second   map[string][]cluster.LogEntry
	applied  uint64 // of the second copy
	until    time.Time
}

// Log is the machine's way to the world's log, which is late, answers twice or not, as the directory is.
func (m *Machine) Log() cluster.Log { return logOf{m} }

// FillLog has the log refuse what comes, but for records that give room, or with false take it again.
func (w *World) FillLog(full bool) { w.log.full = full }

// LogOf is all that the log has of a key.
func (w *World) LogOf(kind, name string) []cluster.LogEntry {
	return slices.Clone(w.log.subjects[keyOf(kind, name)])
}

// FencesOf are all fences of a shard that there ever were.
func (w *World) FencesOf(kind string, shard int) []cluster.LogEntry {
	return slices.Clone(w.log.subjects[fenceOf(kind, shard)])
}

type logOf struct{ m *Machine }

func keyOf(kind, name string) string        { return kind + "/" + name }
func fenceOf(kind string, shard int) string { return fmt.Sprint(kind, ":", shard) }
func (l *history) at(subject string) (at uint64) {
	if s := l.subjects[subject]; len(s) > 0 {
		at = s[len(s)-1].At
	}
	return at
}

// do has f done with the log, some time later, and done told what it says: or an error, after which it may be done or not.
func (x logOf) do(f func() (uint64, error), done func(uint64, error)) {
	w := x.m.world
	if x.m.unreached(func() { done(0, ErrDirectory) }) {
		return
	}
	fails := w.chance(w.Faults.Fail)
	lost := fails && w.chance(500)
	w.delayed(func() {
		at, err := uint64(0), error(nil)
		if !lost {
			at, err = f()
		}
		if fails {
			at, err = 0, ErrDirectory
		}
		for range 1 + w.twice() {
			w.later(x.m, w.Faults.Late, func() { done(at, err) })
		}
	})
}

func (w *World) twice() int {
	if w.chance(w.Faults.Twice) {
		return 1
	}
	return 0
}

// add appends to a subject, in the place of all that it has if whole is set.
func (w *World) add(subject string, b []byte, whole bool) (uint64, error) {
	l := &w.log
	if l.subjects == nil {
		l.subjects, l.second = map[string][]cluster.LogEntry{}, map[string][]cluster.LogEntry{}
	}
	l.last++
	e := cluster.LogEntry{At: l.last, Record: slices.Clone(b)}
	put := func(to map[string][]cluster.LogEntry) {
		if whole {
			to[subject] = nil
		}
		to[subject] = append(to[subject], e)
	}
	put(l.subjects)
	d := time.Millisecond
	if w.chance(w.Faults.Behind) && w.Faults.Most > 0 {
		d += time.Duration(w.Random.Int64N(int64(w.Faults.Most)))
	}
	if w.Clock.Now().Add(d).Before(l.until) { // all in the order of the log
		d = l.until.Sub(w.Clock.Now())
	}
	l.until = w.Clock.Now().Add(d)
	w.Clock.AfterFunc(d, func() {
		for l.applied < l.last && l.applied < e.At {
			l.applied++
			l.behind[0]()
			l.behind = l.behind[1:]
		}
	})
	l.behind = append(l.behind, func() { put(l.second) })
	return l.last, nil
}

// Last implements cluster.Log.
func (x logOf) Last(kind string, shard int, done func([]byte, uint64, error)) {
	var b []byte
	x.do(func() (uint64, error) {
		w := x.m.world
		from := w.log.subjects
		if w.chance(100) {
			from = w.log.second
		}
		list := from[fenceOf(kind, shard)]
		if len(list) == 0 {
			return 0, nil
		}
		b = list[len(list)-1].Record
		return list[len(list)-1].At, nil
	}, func(at uint64, err error) { done(b, at, err) })
}

// Fence implements cluster.Log.
func (x logOf) Fence(kind string, shard int, fence []byte, after uint64, done func(uint64, error)) {
	x.do(func() (uint64, error) {
		if x.m.world.log.at(fenceOf(kind, shard)) != after {
			return 0, cluster.ErrFenced
		}
		return x.m.world.add(fenceOf(kind, shard), fence, false)
	}, done)
}

// Append implements cluster.Log.
func (x logOf) Append(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	x.append(kind, shard, fence, name, record, false, done)
}

// Spare implements cluster.Log.
func (x logOf) Spare(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	x.append(kind, shard, fence, name, record, len(record) <= cluster.MaxSpare, done)
}

func (x logOf) append(kind string, shard int, fence uint64, name string, record []byte, spare bool, done func(uint64, error)) {
	x.do(func() (uint64, error) {
		if x.m.world.log.at(fenceOf(kind, shard)) != fence && fence != 1<<64-1 {
			return 0, cluster.ErrFenced
		}
		if x.m.world.log.full && !spare {
			return 0, cluster.ErrFull
		}
		return x.m.world.add(keyOf(kind, name), record, false)
	}, done)
}

// Replace implements cluster.Log.
func (x logOf) Replace(kind, name string, record []byte, after uint64, done func(uint64, error)) {
	x.do(func() (uint64, error) {
		if x.m.world.log.at(keyOf(kind, name)) != after {
			return 0, cluster.ErrFenced
		}
		return x.m.world.add(keyOf(kind, name), record, true)
	}, done)
}

// Read implements cluster.Log.
func (x logOf) Read(kind string, _ int, name string, least uint64, done func([]cluster.LogEntry, error)) {
	var list []cluster.LogEntry
	x.do(func() (uint64, error) {
		w := x.m.world
		if w.chance(500) {
			list = slices.Clone(w.log.subjects[keyOf(kind, name)])
			return 0, nil
		}
		if list = slices.Clone(w.log.second[keyOf(kind, name)]); w.log.applied < least {
			return 0, errors.New("simnet: the copy is behind")
		}
		return 0, nil
	}, func(_ uint64, err error) {
		if bytesOf(list) > cluster.MaxRead && err == nil {
			list, err = nil, cluster.ErrLong
		}
		done(list, err)
	})
}

func bytesOf(list []cluster.LogEntry) (n int) {
	for _, e := range list {
		n += len(e.Record)
	}
	return n
}

// List implements cluster.Log. The last write is the place in the log, since a world has no time of day.
func (x logOf) List(q cluster.KeyQuery, done func(cluster.KeyPage, error)) {
	var page cluster.KeyPage
	x.do(func() (uint64, error) {
		of := x.m.world.log.second
		first := cluster.NewFirstKeys(q)
		for subject, list := range of {
			if kind, name, ok := strings.Cut(subject, "/"); ok && len(list) > 0 {
				first.Add(cluster.KeyID{Kind: kind, Name: name})
			}
		}
		keys, more := first.Keys()
		page = cluster.KeyPage{More: more}
		for _, k := range keys {
			i := cluster.KeyInfo{KeyID: k}
			for _, e := range of[keyOf(k.Kind, k.Name)] {
				i.Records, i.Bytes, i.Last = i.Records+1, i.Bytes+int64(len(e.Record)), int64(e.At)
			}
			page.Keys = append(page.Keys, i)
		}
		return 0, nil
	}, func(_ uint64, err error) { done(page, err) })
}
