// Package rerun runs the guests of a recording again (package recorder), on one worker, without services, a bundle or a
// network, and compares what they do with what was recorded.
//
// A recording may be forged: its snapshots and messages are a stranger's. Guests run within limits that a file can lower and
// not raise, and nothing of what a turn asks for is carried out.
package rerun

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Options say what is repeated.
type Options struct {
	// Modules are those to take; the others are looked for in the engine's cache.
	Modules [][]byte
	// Other is a module that is given the same messages as Instead, which is the name of an image or empty for the only one.
	// What it writes is compared, and goes nowhere.
	Other   []byte
	Instead string
	// Actor is the path of an actor, as /user/a: only what leads to its turns is repeated. Empty: everything.
	Actor string
	// Until is where to stop.
	Until Until
	// Memory is the most that the memory of a guest may have, in bytes; 0: replay.DefaultMemory.
	Memory uint64

	kept  int64                // instead of mostKept
	seen  func(*happened) bool // an entry was repeated; false: stop
	plant func(*sandbox.Entry) // an input is another one than recorded
}

// Until is a place in a recording. The zero value is its end.
type Until struct {
	Time    int64  // leave out entries that are later, ns since 1970, and what they lead to; 0: it does not count
	Path    string // stop behind an entry of this actor
	Turn    uint64 // with Path: behind the entry with this turn, or the first one after it
	Failure bool   // stop behind an entry that has failed, with Path: of that actor
}

// Report is what came out.
type Report struct {
	Lives   int    `json:"incarnations"` // that were repeated
	Entries int    `json:"entries"`
	Turns   int    `json:"turns"`    // of these, failed ones included
	Failed  int    `json:"failures"` // failed turns that came about again
	Records int    `json:"records"`  // of the file
	Stopped string `json:"stopped,omitempty"`
	// Difference is the first turn that did not come out as recorded; nil: all did.
	Difference *Difference `json:"difference,omitempty"`
	// NotRecorded are actors that are not, or not to their end, in the recording.
	NotRecorded []Absent `json:"not_recorded,omitempty"`
	// Inexact are actors that were handed a known secret, which is masked in the recording, and from which turn on. Their turns
	// are repeated with the mask, as far as they come to the same kind of end, and do not count in Difference. Unlike is how many
	// turns are left out: those of an entry that comes to another end, and all behind it.
	Inexact []Absent `json:"inexact,omitempty"`
	Unlike  int      `json:"inexact_left_out,omitempty"`
	// Others are the first differences of each incarnation whose messages another module was given; More are not listed.
	// Compared is how many of its turns were equal.
	Others   []Difference `json:"other_module,omitempty"`
	More     int          `json:"more,omitempty"`
	Compared int          `json:"equal_turns,omitempty"`
	// Living are the actors at the place where it stopped, up to a bound.
	Living []Actor `json:"living,omitempty"`
}

// Difference is a turn that came out differently.
type Difference struct {
	Path        string `json:"path"`
	Incarnation uint64 `json:"incarnation"`
	Turn        uint64 `json:"turn"`
	Command     int    `json:"command"` // of the turn, from 0; -1: it is not known, or not about one
	Byte        int    `json:"byte"`    // of the entry's commands, from 0; -1 likewise
	What        string `json:"what"`
}

// String is the difference in a line.
func (d *Difference) String() string {
	s := fmt.Sprintf("%s, turn %d", d.Path, d.Turn)
	if d.Incarnation > 0 {
		s = fmt.Sprintf("%s, incarnation %d, turn %d", d.Path, d.Incarnation, d.Turn)
	}
	if d.Command >= 0 {
		s += fmt.Sprintf(", command %d", d.Command)
	}
	if d.Byte >= 0 {
		s += fmt.Sprintf(", byte %d", d.Byte)
	}
	return s + ": " + d.What
}

// Absent is an actor that is not in the recording.
type Absent struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Actor is one that lives.
type Actor struct {
	Path        string `json:"path"`
	Type        string `json:"type"`
	Incarnation uint64 `json:"incarnation"`
	Turns       uint64 `json:"turns"`
	Chain       string `json:"chain"`
}

// Bounds of what is held and listed.
const (
	mostAwake  = 256 // instances; further guests are put aside
	mostListed = 20
	// mostKept is how many bytes of commands may be kept because messages of them are yet to be handed out. A forged recording
	// could have all of them.
	mostKept = 1 << 30
	mostFuel = 1 << 40 // of a turn: about twenty minutes
)

// ErrEmpty says that a recording has no turns to repeat.
var ErrEmpty = errors.New("it has no turns: there is nothing to repeat")

// run is a repetition.
type run struct {
	ctx    context.Context
	o      Options
	of     *recorder.Recording
	report *Report
	plan   *plan
	images []*runtime.Image
	other  *runtime.Image
	twin   int // the image whose messages the other module is given; -1: none

	cursor *recorder.Cursor
	lives  map[uint64]*life
	kept   map[recorder.Place]*sent
	bytes  int64 // of what is kept
	awake  []*player
	mail   []abi.Envelope

	mu      sync.Mutex
	running *sandbox.Instance
	over    bool
}

// life is an incarnation of the recording.
type life struct {
	recorder.Incarnation
	image   int
	p       *player // nil: nothing of it was repeated yet
	twin    *player // nil: there is none, or it has differed too much
	told    bool    // a difference of the twin
	skipped bool    // not all of its entries are repeated
	masked  bool    // known secrets in what it takes in are masked
	unlike  bool    // with the mask it comes to another end: the rest of it is not repeated
}

// sent is what an entry has written, for those whose messages come from it.
type sent struct {
	by     abi.Ref
	outbox []byte
	uses   int
}

// Run repeats a recording. The error is that of ctx if it ends before, wraps replay.ErrModule if a module is missing and
// recorder.ErrFile if the recording is damaged; nothing has run then in the last two cases.
func Run(ctx context.Context, engine *runtime.Engine, of *recorder.Recording, o Options) (*Report, error) {
	p, err := planOf(ctx, of, o.Actor)
	if err != nil {
		return nil, err
	}
	r := newRun(ctx, of, p, o)
	defer r.close()
	if err := r.load(engine); err != nil {
		return nil, err
	}
	if err := r.forward(ctx, o.Until.Time); err != nil {
		return nil, err
	}
	if r.report.Entries == 0 && r.report.Difference == nil && r.report.Stopped == "" {
		return nil, ErrEmpty
	}
	r.list()
	return r.report, nil
}

// newRun is a repetition that has not begun.
func newRun(ctx context.Context, of *recorder.Recording, p *plan, o Options) *run {
	r := &run{ctx: ctx, o: o, of: of, plan: p, twin: -1}
	r.rewind()
	return r
}

// rewind goes back to the begin. The images stay.
func (r *run) rewind() {
	for _, l := range r.lives {
		l.close()
	}
	r.report = &Report{Records: r.plan.records, NotRecorded: r.plan.absent, Inexact: r.plan.inexact}
	r.cursor, r.lives, r.kept, r.bytes, r.awake = r.of.Cursor(), map[uint64]*life{}, map[recorder.Place]*sent{}, 0, nil
}

// forward goes through the records, without entries that are later than a time and what follows them; 0: none are. It can go on
// with a later time. After an error the repetition is of no use.
func (r *run) forward(ctx context.Context, until int64) error {
	r.mu.Lock()
	r.ctx, r.over = ctx, false
	r.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ctx != ctx {
			return
		}
		if r.over = true; r.running != nil {
			r.running.Kill("the replay was ended")
		}
	})
	defer stop()
	r.cursor.Until(until)
	if err := r.all(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the replay was ended: %w", context.Cause(ctx))
	}
	return nil
}

// load loads all images that are needed.
func (r *run) load(engine *runtime.Engine) error {
	modules := map[[sha256.Size]byte][]byte{}
	for _, b := range r.o.Modules {
		modules[sha256.Sum256(b)] = b
	}
	r.images = make([]*runtime.Image, len(r.of.Images))
	for n := range r.of.Images {
		i := &r.of.Images[n]
		if !r.plan.images[n] {
			continue
		}
		image, err := replay.LoadImage(r.ctx, engine, i, modules[i.Module], r.o.Memory)
		if err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
		r.images[n] = image
		if r.o.Other == nil || r.o.Instead != "" && r.o.Instead != i.Name {
			continue
		}
		if r.twin >= 0 {
			return fmt.Errorf("it is about several modules, as %s and %s: say which one the other is instead of", r.of.Images[r.twin].Name, i.Name)
		}
		r.twin = n
	}
	for typ, n := range r.plan.types {
		if image := r.images[n]; image != nil && !slices.Contains(image.Description().Types, typ) {
			return fmt.Errorf("%s has no actor type %q", r.of.Images[n].Name, typ)
		}
	}
	switch {
	case r.o.Other == nil:
		return nil
	case r.twin < 0:
		return fmt.Errorf("it is not about a module %q", r.o.Instead)
	}
	var err error
	r.other, err = replay.LoadImage(r.ctx, engine, &r.of.Images[r.twin], r.o.Other, r.o.Memory)
	return err
}

func (r *run) close() {
	for _, l := range r.lives {
		l.close()
	}
	for _, image := range append(r.images, r.other) {
		if image != nil {
			_ = image.Close() // it never fails
		}
	}
}

func (l *life) close() {
	for _, p := range []*player{l.p, l.twin} {
		if p != nil {
			p.close()
		}
	}
	l.p, l.twin = nil, nil
}

// rest gives its instances back: nothing more of it is repeated.
func (l *life) rest() {
	l.p.close()
	if l.twin != nil {
		l.twin.close()
		l.twin = nil
	}
}

// all goes through the records.
func (r *run) all() error {
	for {
		x, err := r.cursor.Next()
		if err != nil {
			return err
		}
		if x == nil {
			if r.cursor.Late() {
				r.report.Stopped = "at the time"
			}
			return nil
		}
		if r.ctx.Err() != nil {
			return nil
		}
		l := r.lives[x.Life]
		switch x.Kind {
		case recorder.Life:
			r.lives[x.Life] = &life{Incarnation: *x.Incarnation, image: x.Image}
		case recorder.Entry:
			if !r.plan.needs(x.At) {
				l.skipped = true
				continue
			}
			goesOn, err := r.entry(l, x)
			if err != nil || !goesOn {
				return err
			}
		case recorder.End:
			if p := l.p; p != nil && !l.skipped && !l.masked && p.chain != x.Chain {
				r.differs(l, p.next, "the chain of all that it has done is another one")
				return nil
			}
			fallthrough
		case recorder.Left:
			l.close()
			delete(r.lives, x.Life)
		}
	}
}

func (r *run) differs(l *life, turn uint64, why string, args ...any) {
	r.report.Difference = &Difference{l.Path, l.Number, turn, -1, -1, fmt.Sprintf(why, args...)}
}

// entry repeats an entry; false: there is no use in going on.
func (r *run) entry(l *life, x *recorder.Record) (bool, error) {
	if l.masked = l.masked || x.Masked; l.unlike {
		r.report.Unlike += x.Played()
		r.release(x)
		return true, nil
	}
	if l.p == nil {
		l.p = newPlayer(r.images[l.image], &l.Incarnation)
		l.p.plant = r.o.plant
		r.report.Lives++
		if l.image == r.twin {
			if l.Snapshot == nil {
				l.twin = newPlayer(r.other, &l.Incarnation)
			} else {
				r.differsOther(l, &Difference{l.Path, l.Number, l.Turns, -1, -1, "it begins with a snapshot of the module that was recorded, and is not compared"})
			}
		}
	}
	if !r.resolve(l, x) {
		return false, nil
	}
	first := l.p.next
	o, err := r.play(l.p, x, false)
	if l.masked && r.ctx.Err() == nil && (err != nil || !o.ends(x)) {
		r.report.Unlike += x.Played()
		l.unlike = true
		l.rest()
		return true, nil
	}
	if err != nil || r.ctx.Err() != nil {
		if r.ctx.Err() == nil {
			r.differs(l, first, "%v", err)
		}
		return false, nil
	}
	r.compare(l, x, first, &o)
	if r.report.Difference == nil {
		r.report.Entries++
		r.report.Turns += x.Played()
		if x.Failed {
			r.report.Failed++
		}
	}
	if r.o.seen != nil && !r.o.seen(r.happened(l, x, first, &o)) || r.report.Difference != nil {
		return false, nil
	}
	if uses := r.plan.uses(x.At); uses > 0 {
		most := cmp.Or(r.o.kept, mostKept)
		if r.bytes += int64(len(o.outbox)); r.bytes > most {
			return false, fmt.Errorf("messages wait that are in more than %d MiB of commands", most>>20)
		}
		r.kept[x.At] = &sent{l.Ref, clone(o.outbox), uses}
	}
	if l.twin != nil {
		r.compareOther(l, x, first, &o)
	}
	if u := r.o.Until; (u.Failure && x.Failed || !u.Failure && u.Path != "" && l.p.next > u.Turn) && (u.Path == "" || isAt(l.Path, u.Path)) {
		r.report.Stopped = fmt.Sprintf("behind turn %d of %s", l.p.next-1, l.Path)
		return false, nil
	}
	return true, nil
}

// isAt reports whether a path, with scheme and system, is another one, maybe without.
func isAt(path, other string) bool {
	return path == other || strings.HasPrefix(other, "/") && strings.HasSuffix(path, other) && strings.Count(path, "/") == strings.Count(other, "/")+2
}

// play runs an entry, and sees to it that not too many guests have an instance.
func (r *run) play(p *player, x *recorder.Record, free bool) (outcome, error) {
	if p.x == nil {
		r.awake = append(r.awake, p)
		for n := len(r.awake); n > 0 && len(r.awake) > mostAwake; n-- {
			old := r.awake[0]
			if r.awake = r.awake[1:]; old != p && old.x != nil && !old.park() {
				r.awake = append(r.awake, old)
			}
		}
		if err := p.awake(); err != nil {
			return outcome{}, err
		}
	}
	p.x.ForgetKill()
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return outcome{}, context.Cause(r.ctx)
	}
	r.running = p.x
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.running = nil
		r.mu.Unlock()
	}()
	return p.run(x, r.mail, free)
}

// resolve gets the messages of an entry; false: one is missing.
func (r *run) resolve(l *life, x *recorder.Record) bool {
	r.mail = r.mail[:0]
	ok := true
	x.Mail(func(m *recorder.Message) bool {
		e := m.Envelope
		if m.Sent {
			s := r.kept[m.From]
			if s == nil || !s.command(m.Command, &e) {
				r.differs(l, l.p.next, "a message of it is of a command that its sender has not written")
				ok = false
				return false
			}
			r.used(m.From, s)
		}
		e.Time = x.Now
		r.mail = append(r.mail, e)
		return true
	})
	return ok
}

// release is resolve of an entry that is left out: its messages are not waited for any more.
func (r *run) release(x *recorder.Record) {
	x.Mail(func(m *recorder.Message) bool {
		if s := r.kept[m.From]; m.Sent && s != nil {
			r.used(m.From, s)
		}
		return true
	})
}

// used counts a message of what the entry at a place has sent. After the last one it is not kept.
func (r *run) used(at recorder.Place, s *sent) {
	if s.uses--; s.uses == 0 {
		r.bytes -= int64(len(s.outbox))
		delete(r.kept, at)
	}
}

// command makes the message of the nth command.
func (s *sent) command(n int, e *abi.Envelope) bool {
	var c abi.Command
	for at := 0; at < len(s.outbox); {
		k, err := abi.DecodeCommand(&c, s.outbox[at:])
		if err != nil {
			return false
		}
		if at += k; c.Op == abi.OpEnd {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		e.Kind, e.Sender, e.Correlation, e.Payload = abi.KindMessage, s.by, c.Correlation, c.Payload
		switch {
		case c.Flags&abi.FlagReply != 0:
			e.Kind = abi.KindReply
		case c.Flags&abi.FlagReplyError != 0:
			e.Kind = abi.KindReplyError
		}
		return c.Op == abi.OpSend || c.Op == abi.OpAsk
	}
	return false
}

// ends reports whether an entry has come to the end that is recorded, whatever it has cost and written.
func (o *outcome) ends(x *recorder.Record) bool {
	return o.done == x.Done && (o.failure != nil) == x.Failed && (o.failure == nil || o.failure.Kind == x.Failure.Kind)
}

// compare compares what an entry has come to with the record.
func (r *run) compare(l *life, x *recorder.Record, first uint64, o *outcome) {
	p, turn := l.p, first+uint64(min(o.done, x.Done))
	fuel := o.fuel
	if x.Failed {
		fuel = uint64(x.Failure.Kind)
	}
	p.chain = p.chain.Add(o.outbox, fuel, o.done)
	f := o.failure
	switch {
	case l.masked:
	case o.done < x.Done && f == nil:
		r.differs(l, turn, "%d turns of its entry are had, as recorded %d", o.done, x.Done)
	case o.done < x.Done || f != nil && !x.Failed:
		r.differs(l, turn, "it fails: %v; as recorded it ends well", f)
	case x.Failed && f == nil:
		r.differs(l, turn, "it ends well; as recorded it fails: %v", &x.Failure)
	case o.done != x.Done:
		r.differs(l, turn, "%d turns of its entry end well, as recorded %d", o.done, x.Done)
	case x.Failed && (f.Kind != x.Failure.Kind || f.Reason != x.Failure.Reason):
		r.differs(l, turn, "it fails otherwise: %v; as recorded: %v", f, &x.Failure)
	case x.Failed && f.Fuel != x.Failure.Fuel:
		r.differs(l, turn, "the failing turn spends %d units of fuel, as recorded %d", f.Fuel, x.Failure.Fuel)
	case x.Differs(p.chain):
		r.differs(l, first, "its commands or its fuel are others than recorded")
	}
}

// compareOther gives the same messages to the other module.
func (r *run) compareOther(l *life, x *recorder.Record, first uint64, o *outcome) {
	outbox := clone(o.outbox)
	got, err := r.play(l.twin, x, true)
	d := &Difference{l.Path, l.Number, first + uint64(min(got.done, x.Done)), -1, -1, ""}
	switch {
	case r.ctx.Err() != nil:
		return
	case err != nil:
		d.What = err.Error()
	case got.failure != nil && !x.Failed:
		d.What = fmt.Sprintf("the other module fails: %v", got.failure)
	case got.failure == nil && x.Failed:
		d.What = fmt.Sprintf("the other module handles it; the recorded one fails: %v", &x.Failure)
	case string(got.outbox) != string(outbox):
		var turn int
		turn, d.Command, d.Byte = place(outbox, got.outbox, sandbox.Batching(r.other))
		d.Turn, d.What = first+uint64(turn), "the other module writes other commands"
	default:
		r.report.Compared += x.Done
		return
	}
	if got.failure != nil && !x.Failed || err != nil { // it goes on from another state
		l.twin.close()
		l.twin = nil
	}
	if !l.told {
		l.told = true
		r.differsOther(l, d)
	}
}

func (r *run) differsOther(_ *life, d *Difference) {
	if len(r.report.Others) == mostListed {
		r.report.More++
		return
	}
	r.report.Others = append(r.report.Others, *d)
}

// place is the first byte in which two outboxes differ, and the turn and the command that it is in.
func place(a, b []byte, marked bool) (turn, command, at int) {
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	outbox := a
	if at >= len(a) {
		outbox = b
	}
	for from := 0; from < len(outbox); command++ {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, outbox[from:])
		if err != nil || from+n > at {
			break
		}
		if from += n; c.Op == abi.OpEnd && marked {
			turn, command = turn+1, -1
		}
	}
	return turn, command, at
}

// living are the lives of actors that live, by path and ref. Where the end of an incarnation is not passed yet, and the next one
// has begun, it is that one.
func (r *run) living(has func(*life) bool) (all []*life) {
	for _, l := range r.lives {
		if has(l) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *life) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Ref, b.Ref), cmp.Compare(b.Number, a.Number))
	})
	return slices.CompactFunc(all, func(a, b *life) bool { return a.Path == b.Path && a.Ref == b.Ref })
}

// list lists the actors that live.
func (r *run) list() {
	for _, l := range r.living(func(l *life) bool { return l.p != nil }) {
		if len(r.report.Living) == 10*mostListed {
			return
		}
		r.report.Living = append(r.report.Living, Actor{l.Path, l.Type, l.Number, l.p.next, fmt.Sprintf("%016x", uint64(l.p.chain))})
	}
}
