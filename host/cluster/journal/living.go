package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
)

// Which keys of a kind are to live is recorded in the log as well: of each shard there is a list, below a name that no key's actor has. Its
// records are changes of the list, or all of it, under the fence of the shard. So who is not the owner any more changes nothing, and the next
// owner reads what the one before has recorded.

// Bounds of the list of a shard.
const (
	MaxLiving      = 8192      // keys
	MaxLivingBytes = 512 << 10 // bytes of their names, and livingOverhead each
	livingOverhead = 8
	memoryOfName   = 64 // bytes that a name takes in memory beside its own, about
)

// Errors of keys that are not recorded.
var (
	// ErrMany says that a shard has as many keys that live as it may have.
	ErrMany error = tooMany{}
	errLate       = errors.New("journal: it is not recorded that the key lives: the shard has moved")
)

// tooMany is ErrMany. Senders learn the manifest's key.
type tooMany struct{}

func (tooMany) Error() string {
	return fmt.Sprintf("journal: the shard of the key has %d keys that live, or %d bytes of their names, which is all that is remembered: keyed.shards sets how many shards there are", MaxLiving, MaxLivingBytes)
}
func (tooMany) ManifestKey() string { return "keyed.remember" }

var _ shard.Memory = (*Journal)(nil)

// Remembers says that the keys of an actor at the top are remembered here while they live, and in how many shards they are.
func (j *Journal) Remembers(name string, shards int) { j.kind(name, shards) }

// living is the list of a shard, as this node knows it.
type living struct {
	fence   uint64 // under which it was read; 0: it was not
	names   map[string]bool
	size    int64 // of the names, as the bound counts them
	last    uint64
	bytes   int64 // of its records in the log, and how many they are
	records int
	epoch   uint64 // of the last one that counts, and its number
	number  uint64

	busy    bool           // it is read or written now
	anew    bool           // what the log has cannot be read: all of the list is written before anything else
	trim    bool           // what the log has is to be written anew as soon as it can be
	round   uint64         // of what is under way: what was begun in one before does not count
	ends    []*change      // keys that live no more, for which the log had no room, and what waits
	todo    []*change      // behind them, in order
	pending map[string]int // how many changes of a name are not confirmed yet
	readers []func([]string, error)
}

// change is one of the list.
type change struct {
	name  string
	lives bool
	done  func(error)
}

// batch is a record of changes.
type batch struct {
	part  *part
	list  []*change
	spare bool // it only says which keys do not live any more
	whole bool // all that live, in the place of what cannot be read
}

func listName(shard int) string { return ":" + strconv.Itoa(shard) }

func sizeOf(name string) int64 { return int64(len(name) + livingOverhead) }

// listOf is the shard of a kind, if it is here; the caller holds the lock.
func (j *Journal) listOf(kind string, shard int) *part {
	k := j.kinds[kind]
	if k == nil || shard < 0 || shard >= k.n || j.closed || k.shards[shard] == nil || !k.shards[shard].served {
		return nil
	}
	return k.shards[shard]
}

// Recall implements shard.Memory.
func (j *Journal) Recall(kind string, shard int, done func([]string, error)) {
	j.mu.Lock()
	p := j.listOf(kind, shard)
	if p == nil {
		j.mu.Unlock()
		done(nil, ErrMoved)
		return
	}
	p.living.readers = append(p.living.readers, done)
	f := j.tendList(p)
	j.mu.Unlock()
	f()
}

// Lives implements shard.Memory.
func (j *Journal) Lives(kind string, shard int, name string) bool {
	j.mu.Lock()
	p := j.listOf(kind, shard)
	lives := p != nil && p.living.names[name] && p.living.pending[name] == 0
	j.mu.Unlock()
	if j.opt.skip&guardBegun != 0 && !lives {
		j.change(kind, shard, &change{name, true, func(error) {}})
		return true
	}
	return lives
}

// Settled implements shard.Memory.
func (j *Journal) Settled(kind string, shard int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.listOf(kind, shard)
	return p == nil || len(p.living.pending) == 0
}

// Remember implements shard.Memory.
func (j *Journal) Remember(kind string, shard int, name string, done func(error)) {
	j.change(kind, shard, &change{name, true, done})
}

// Forget implements shard.Memory.
func (j *Journal) Forget(kind string, shard int, name string) {
	if j.opt.skip&guardEnded == 0 {
		j.change(kind, shard, &change{name, false, func(error) {}})
	}
}

func (j *Journal) change(kind string, shard int, c *change) {
	j.mu.Lock()
	p := j.listOf(kind, shard)
	if p == nil {
		j.mu.Unlock()
		c.done(errLate)
		return
	}
	l := &p.living
	if l.pending == nil {
		l.pending = map[string]int{}
	}
	l.pending[c.name]++
	l.todo = append(l.todo, c)
	f := j.tendList(p)
	j.mu.Unlock()
	f()
}

// settled notes that a change is confirmed, or is given up.
func (l *living) settled(name string) {
	if l.pending[name]--; l.pending[name] <= 0 {
		delete(l.pending, name)
	}
}

// tendList begins what is to be done for the list of a shard, unless something is under way. The caller holds the lock, and calls what it
// gets without it.
func (j *Journal) tendList(p *part) func() {
	l := &p.living
	round := l.round
	switch {
	case l.busy:
	case len(l.readers) == 0 && len(l.todo) == 0 && len(l.ends) == 0 && !l.anew:
	case l.fence == 0 || l.fence != p.fence:
		l.busy = true
		return j.fenced(p, func(err error) { j.readList(p, round, 0, err) })
	case len(l.readers) > 0:
		readers := l.readers
		l.readers = nil
		names := slices.Sorted(maps.Keys(l.names))
		next := j.tendList(p)
		return func() {
			for _, f := range readers {
				f(slices.Clone(names), nil)
			}
			next()
		}
	default:
		return j.writeList(p)
	}
	return func() {}
}

// stillList reports whether what was begun in a round counts still; the caller holds the lock.
func (j *Journal) stillList(p *part, round uint64) bool {
	return p.living.round == round && p.served && !j.closed
}

// readList reads the list of a shard.
func (j *Journal) readList(p *part, round uint64, try int, err error) {
	j.mu.Lock()
	if !j.stillList(p, round) {
		j.mu.Unlock()
		return
	}
	if err != nil {
		ends := j.dropList(p)
		j.mu.Unlock()
		for _, f := range ends {
			f()
		}
		return
	}
	fence, least := p.fence, p.high
	if fence == 0 { // another one was there in between
		p.living.busy = false
		f := j.tendList(p)
		j.mu.Unlock()
		j.again(try, f)
		return
	}
	j.mu.Unlock()
	j.opt.Log.Read(p.kind, p.no, listName(p.no), least, onceRead(func(list []cluster.LogEntry, err error) {
		if err != nil && !errors.Is(err, cluster.ErrLong) {
			j.again(try, func() { j.readList(p, round, try+1, nil) })
			return
		}
		j.takeList(p, round, fence, list, err != nil)
	}))
}

// takeList takes what the log has of a list. What no node writes is passed over, and the list is written anew.
func (j *Journal) takeList(p *part, round, fence uint64, list []cluster.LogEntry, long bool) {
	j.mu.Lock()
	if !j.stillList(p, round) {
		j.mu.Unlock()
		return
	}
	l := &p.living
	j.kept -= l.memory()
	read := living{names: map[string]bool{}, round: l.round, ends: l.ends, todo: l.todo, pending: l.pending, readers: l.readers, anew: long}
	*l = read
	var wrong error
	if long {
		wrong = cluster.ErrLong
	}
	if p.fence == fence {
		l.fence = fence
		for _, e := range list {
			if err := l.take(e, fence, p.under, j.opt.skip); err != nil {
				wrong = err
			}
		}
	}
	j.kept += l.memory()
	l.anew = l.anew || wrong != nil && !errors.Is(wrong, ErrAnew)
	if errors.Is(wrong, ErrAnew) { // another one has the shard by now
		p.fence, l.fence = 0, 0
	}
	text := ""
	if l.anew {
		text = fmt.Sprintf("kind %s, shard %d: what the log has of the keys that live is not what a node writes, so some of them may not begin again: %v", p.kind, p.no, wrong)
	}
	f := j.tendList(p) // reading is over
	j.mu.Unlock()
	if text != "" {
		j.refuse("%s", text)
	}
	f()
}

func (l *living) memory() int64 { return l.size + int64(len(l.names))*memoryOfName }

// take takes a record.
func (l *living) take(e cluster.LogEntry, fence, under uint64, skip guard) error {
	f, err := decodeFrame(e.Record)
	switch {
	case err != nil:
	case f.epoch > under && e.At > fence:
		return ErrAnew
	case f.epoch > under || f.form != listForm && f.form != allForm:
		err = fmt.Errorf("%w: it is of epoch %d, and the shard is in %d", errFrame, f.epoch, under)
	}
	l.last, l.bytes, l.records = e.At, l.bytes+int64(len(e.Record)), l.records+1
	if err != nil {
		return err
	}
	older, same := f.epoch < l.epoch || f.epoch == l.epoch && f.number < l.number, f.epoch == l.epoch && f.number == l.number
	if (older || same && f.form == listForm) && skip&guardNumber == 0 {
		return nil // it was under way
	}
	l.epoch, l.number = f.epoch, f.number
	if f.form == allForm {
		l.names, l.size = map[string]bool{}, 0
	}
	return eachChange(f.data, func(name string, lives bool) { l.set(name, lives) })
}

// set changes the list.
func (l *living) set(name string, lives bool) {
	switch has := l.names[name]; {
	case lives && !has:
		l.names[name] = true
		l.size += sizeOf(name)
	case !lives && has:
		delete(l.names, name)
		l.size -= sizeOf(name)
	}
}

// Changes are encoded one after the other: the length of the name, doubled, and 1 more if the key lives; the name.
func appendChange(b []byte, name string, lives bool) []byte {
	n := uint64(len(name)) << 1
	if lives {
		n |= 1
	}
	return append(binary.AppendUvarint(b, n), name...)
}

// eachChange reads them. After an error some were read.
func eachChange(b []byte, each func(name string, lives bool)) error {
	for count := 0; len(b) > 0; count++ {
		n, used := binary.Uvarint(b)
		size := n >> 1
		if used <= 0 || size == 0 || size > abi.MaxName || size > uint64(len(b)-used) || count >= 2*MaxLiving {
			return fmt.Errorf("%w: change %d of the keys that live has no name", errFrame, count)
		}
		b = b[used:]
		if !abi.ValidName(b[:size]) {
			return fmt.Errorf("%w: of the keys that live one is %.40q", errFrame, b[:size])
		}
		each(string(b[:size]), n&1 == 1)
		b = b[size:]
	}
	return nil
}

// bytesOfList bounds a record of changes: all of a list fits into one.
const bytesOfList = MaxLivingBytes

// writeList writes what waits: which keys live no more, for which there was no room, before all else. The caller holds the lock, and calls
// what it gets without it.
func (j *Journal) writeList(p *part) func() {
	l := &p.living
	x := &batch{part: p, spare: len(l.ends) > 0, whole: l.anew}
	f := frame{form: listForm, epoch: p.under}
	from, most := &l.todo, bytesOfList
	switch {
	case x.whole:
		x.spare, f.form, from = false, allForm, new([]*change)
		f.data = l.all()
	case x.spare:
		from, most = &l.ends, cluster.MaxSpare-64
	}
	keys, size, seen := len(l.names), l.size, map[string]bool{}
	grown := int64(0)    // in memory
	var refused []func() // and what needs no record
	n := 0
	for _, c := range *from {
		bytes := sizeOf(c.name)
		if len(f.data)+int(bytes) > most || len(x.list) >= MaxLiving {
			break
		}
		n++
		has, known := seen[c.name]
		if !known {
			has = l.names[c.name]
		}
		if c.lives && has && !known && !x.spare { // it came while the list was read
			l.settled(c.name)
			refused = append(refused, func() { c.done(nil) })
			continue
		}
		var why error
		switch {
		case !c.lives && has:
			keys, size = keys-1, size-bytes
		case c.lives && !has && (keys >= MaxLiving || size+bytes > MaxLivingBytes):
			why = ErrMany
		case c.lives && !has && j.crowded(grown+memoryOfName+bytes):
			why = ErrCrowded
		case c.lives && !has:
			keys, size, grown = keys+1, size+bytes, grown+memoryOfName+bytes
		}
		if why != nil {
			l.settled(c.name)
			refused = append(refused, func() { c.done(why) })
			continue
		}
		seen[c.name] = c.lives
		x.list = append(x.list, c)
		f.data = appendChange(f.data, c.name, c.lives)
	}
	*from = slices.Clone((*from)[n:])
	begin := false
	if len(x.list) > 0 || x.whole {
		p.number++
		f.number = p.number
		fence := p.fence
		if j.opt.skip&guardList != 0 {
			fence = anyFence
		}
		l.busy = true
		begin = j.line(p, &storing{list: x, name: listName(p.no), fence: fence, frame: f, record: f.encode(), began: j.opt.Clock.Now()})
	}
	return func() {
		for _, f := range refused {
			f()
		}
		if begin {
			j.write(p)
		}
	}
}

// all is the list as a record of all that live.
func (l *living) all() (b []byte) {
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		b = appendChange(b, name, true)
	}
	return b
}

// listed notes that a record of changes is confirmed; the caller holds the lock and calls what it gets without it.
func (j *Journal) listed(p *part, s *storing, at uint64) func() {
	l, x := &p.living, s.list
	j.kept -= l.memory()
	for _, c := range x.list {
		l.set(c.name, c.lives)
		l.settled(c.name)
	}
	j.kept += l.memory()
	l.last, l.bytes, l.records = at, l.bytes+int64(len(s.record)), l.records+1
	l.epoch, l.number = s.frame.epoch, s.frame.number
	if x.whole {
		l.anew = false
	}
	l.trim = l.trim || x.spare || x.whole
	l.busy = false
	f := j.trimList(p)
	return func() {
		for _, c := range x.list {
			c.done(nil)
		}
		f()
	}
}

// unlisted is called when a record of changes is not written, or perhaps; the caller holds the lock and calls what it gets without it.
func (j *Journal) unlisted(s *storing, err error) func() {
	l, x := &s.list.part.living, s.list
	var over []*change
	switch {
	case errors.Is(err, ErrAnew): // it is read and written again, if the shard is still here
		if x.spare {
			l.ends = append(x.list, l.ends...)
		} else {
			l.todo = append(x.list, l.todo...)
		}
	case errors.Is(err, cluster.ErrFull):
		l.trim = true
		for _, c := range x.list {
			if !c.lives {
				l.ends = append(l.ends, c)
				continue
			}
			over = append(over, c)
			if s.maybe { // an earlier try may have recorded it, and nobody begins it
				l.pending[c.name]++
				l.ends = append(l.ends, &change{c.name, false, func(error) {}})
			}
		}
	default:
		over = x.list
	}
	for _, c := range over {
		l.settled(c.name)
	}
	l.busy = false
	f := func() {}
	if !errors.Is(err, ErrMoved) {
		f = j.trimList(s.list.part)
	}
	return func() {
		for _, c := range over {
			c.done(err)
		}
		f()
	}
}

// trimList writes a list anew, in one record, when much of what the log has of it is not needed, and goes on then. The caller holds the lock,
// and calls what it gets without it.
func (j *Journal) trimList(p *part) func() {
	l := &p.living
	due := l.records > mostRecords || l.bytes > leastWhole && l.bytes > 4*l.size || l.trim && l.records > 1
	if !due || l.last == 0 || l.busy || l.anew || l.fence == 0 || l.fence != p.fence {
		return j.tendList(p)
	}
	l.busy, l.trim = true, false
	f := frame{form: allForm, epoch: l.epoch, number: l.number, data: l.all()}
	b, round, after := f.encode(), l.round, l.last
	return func() {
		j.opt.Log.Replace(p.kind, listName(p.no), b, after, onceAt(func(at uint64, err error) {
			j.mu.Lock()
			if !j.stillList(p, round) {
				j.mu.Unlock()
				return
			}
			l := &p.living
			if l.busy = false; err == nil {
				l.last, l.bytes, l.records = at, int64(len(b)), 1
				p.high = max(p.high, at)
			} else {
				l.last = 0 // until the next record: a copy that comes later says the same, or is refused
			}
			f := j.tendList(p)
			j.mu.Unlock()
			f()
		}))
	}
}

// dropList forgets the list of a shard that is not here any more; the caller holds the lock and calls what it gets without it.
func (j *Journal) dropList(p *part) (ends []func()) {
	l := &p.living
	j.kept -= l.memory()
	for _, c := range append(l.ends, l.todo...) {
		ends = append(ends, func() { c.done(errLate) })
	}
	for _, f := range l.readers {
		ends = append(ends, func() { f(nil, ErrMoved) })
	}
	*l = living{round: l.round + 1}
	return ends
}
