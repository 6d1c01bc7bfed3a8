package simulate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
)

// once checks that what durable actors send each other arrives once and in order, however often the process dies: of the
// turns that a crash has left, all messages are in the receivers' mailboxes, and of those that it has taken none is. All is
// under the run's lock.
type once struct {
	links map[link]*traffic
	fresh []*sent // of the step under way
	by    abi.Ref // who runs in it; 0: there is none
}

// link is from an actor to another.
type link struct{ from, to abi.Ref }

type traffic struct {
	sent  []*sent
	taken []taken
}

// sent is a message that somebody has sent.
type sent struct {
	by   abi.Ref // in whose turn
	turn uint64  // how many turns that one had had afterwards
	sum  uint64
	text string
	not  bool // it was refused; nobody knows of that in the next process, where it may arrive
}

// taken is a message in a mailbox.
type taken struct {
	position uint64
	sum      uint64
	text     string
}

func (o *once) of(l link) *traffic {
	t := o.links[l]
	if t == nil {
		if o.links == nil {
			o.links = map[link]*traffic{}
		}
		t = &traffic{}
		o.links[l] = t
	}
	return t
}

func sumOf(e *host.Envelope) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(e.Kind), byte(e.Correlation), byte(e.Correlation >> 8), byte(e.Correlation >> 16)})
	_, _ = h.Write(e.Headers)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(e.Payload)
	return h.Sum64()
}

// sends notes a message that a durable actor sends to another.
func (o *once) sends(e *host.Envelope, to abi.Ref) *sent {
	s := &sent{by: o.by, sum: sumOf(e), text: shown(e)}
	t := o.of(link{e.Sender, to})
	t.sent = append(t.sent, s)
	o.fresh = append(o.fresh, s)
	return s
}

// takes notes that it is in the mailbox, or that it was refused.
func (o *once) takes(e link, m taken, s *sent, refused bool) {
	t := o.of(e)
	if refused {
		if s != nil {
			s.not = true
		}
		return
	}
	t.taken = append(t.taken, m)
}

// stepped is called after each step.
func (o *once) stepped(sys *host.System, doors map[abi.Ref]*door) {
	o.by = 0
	if len(o.fresh) == 0 {
		return
	}
	for _, s := range o.fresh {
		s.turn = ^uint64(0)
		if d := doors[s.by]; d != nil {
			if i, err := sys.View().Info(d.ref); err == nil {
				s.turn = i.Turns
			}
		}
	}
	o.fresh = o.fresh[:0]
}

// ends forgets an actor that has ended for good.
func (o *once) ends(ref abi.Ref) {
	for l := range o.links {
		if l.from == ref || l.to == ref {
			delete(o.links, l)
		}
	}
}

// crashed takes what a crash has left: is are the durable actors that are back.
func (o *once) crashed(is map[abi.Ref]*port.State) {
	o.fresh = nil
	for l, t := range o.links {
		to := is[l.to]
		if is[l.from] == nil || to == nil {
			delete(o.links, l)
			continue
		}
		t.sent = slices.DeleteFunc(t.sent, func(s *sent) bool { return is[s.by] != nil && s.turn > is[s.by].Turns })
		t.taken = slices.DeleteFunc(t.taken, func(m taken) bool { return m.position > to.Position })
	}
}

// check compares what was sent with what has arrived. Nothing is under way.
func (o *once) check(r *Run) {
	for _, l := range slices.SortedFunc(maps.Keys(o.links), func(a, b link) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }) {
		t := o.links[l]
		if t.agree() {
			continue
		}
		want := slices.DeleteFunc(slices.Clone(t.sent), func(s *sent) bool { return s.not })
		i := 0
		for i < min(len(want), len(t.taken)) && want[i].sum == t.taken[i].sum {
			i++
		}
		what := "has arrived and was not sent, or was sent once"
		text := ""
		switch {
		case i >= len(t.taken):
			what, text = "has not arrived", want[i].text
		case i >= len(want):
			text = t.taken[i].text
		default:
			what, text = "was sent as "+want[i].text+", and has arrived", t.taken[i].text
		}
		r.violate("durable actors hear each other once", "message %d of %s to %s %s: %s", i+1, r.nameOf(l.from), r.nameOf(l.to), what, text)
		return
	}
}

// agree reports whether all that was sent has arrived, in order. What was refused may have arrived: if it has, that is settled.
func (t *traffic) agree() bool {
	i, j := 0, 0
	for i < len(t.sent) && j < len(t.taken) && !t.sent[i].not && t.sent[i].sum == t.taken[j].sum {
		i, j = i+1, j+1
	}
	switch {
	case i == len(t.sent):
		return j == len(t.taken)
	case !t.sent[i].not:
		return false
	}
	rest := traffic{t.sent[i+1:], t.taken[j:]}
	if rest.agree() {
		return true
	}
	if j == len(t.taken) || t.taken[j].sum != t.sent[i].sum {
		return false
	}
	rest.taken = t.taken[j+1:]
	t.sent[i].not = !rest.agree()
	return !t.sent[i].not
}

// nameOf is the path of an actor. The lock is held.
func (r *Run) nameOf(ref abi.Ref) string {
	if d := r.doors[ref]; d != nil {
		return d.path
	}
	return fmt.Sprintf("%016x", uint64(ref))
}

func shown(e *host.Envelope) string { return e.Kind.String() + " " + string(e.Payload) }
