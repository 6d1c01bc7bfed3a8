package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// The children that props name may be others than when the records were made: a renewal, or another manifest, has added some or taken
// some away. A start that is repeated starts those that began then, with the refs that they had.

// mostSkipped is how many refs an actor may give in a row to children that have not begun.
const mostSkipped = 1 << 12

// startChildren finds the children that began when a recorded start had ended, and those that are in no record, if the records may have been
// cut off before them.
func (p *repeats) startChildren(a *actor, scr *scratch, children []Child) {
	p.unbegun = slices.DeleteFunc(p.unbegun, func(x unbegun) bool { return x.of == a })
	f := &a.super.Family
	auto, had := f.Counters()
	next, known := p.hostRefs[a.uid]
	if !known {
		next = had
	}
	at := func(n uint64) abi.Ref {
		f.SetCounters(auto, n)
		return a.nextHostRef()
	}
	lacks := map[string]uint64{} // children that are not there, and the ref of each if all are started
	for i := range children {
		if _, twice := lacks[children[i].Name]; !twice && a.child(children[i].Name) == nil {
			lacks[children[i].Name] = had + uint64(len(lacks))
		}
	}
	end := had + uint64(len(lacks))
	for _, r := range p.ahead.Born {
		name, err := nameBelow(a, r.Life.Path)
		if err != nil || a.sys.here(r.Actor) != nil {
			continue // one that it has spawned itself
		}
		n := next
		for n < next+mostSkipped && at(n) != r.Actor {
			n++
		}
		if n == next+mostSkipped {
			continue
		}
		next = n + 1
		if delete(lacks, name); r.Kind == record.Began { // else it could not be started
			p.unborn[r.Actor] = true
		}
	}
	for i := range children {
		k := &children[i]
		n, there := lacks[k.Name]
		if n = max(n, next); !there {
			continue
		}
		ref := at(n)
		fate, about := p.ahead.Fates[ref]
		if (!about || fate.Began) && !p.ahead.Latest { // earlier releases may have no record of its beginning, and others of it
			continue
		}
		next = n + 1
		if about || p.oldRules(a) { // what was refused was not recorded then
			_ = p.spawnAnew(a, scr, k.Name, &k.Props, ref)
			continue
		}
		p.unbegun = append(p.unbegun, unbegun{a, k.Name, &k.Props, ref})
	}
	p.hostRefs[a.uid] = next
	f.SetCounters(auto, max(next, end))
}

// unstarted says that a child that props name could not be started. For a durable parent that is recorded, as the end of a life that has
// not begun: else it would begin with the next start of the system, if there is room then.
func unstarted(a *actor, name, typ string, ref abi.Ref, err error) {
	a.sys.logf(a, abi.LogError, "the child %q cannot be started: %v", name, err)
	if a.durable && a.parent != nil {
		tellRecorder(a.sys, &record.Record{Kind: record.Ended, Actor: ref, Time: a.sys.time.Now(), Life: &record.Life{Path: a.path + "/" + name, Type: typ, Parent: a.uid}})
	}
}

// errRefusedThen is all that a repetition knows of a spawn that was refused.
var errRefusedThen = errors.New("host: it was refused")

// spawn repeats what a guest's spawn in a turn has come to, whatever would be refused now: present says why, nil: nothing. A spawn of which
// the records do not say that, as they end before, is decided now.
func (p *repeats) spawn(a *actor, scr *scratch, cmd *abi.Command, props *Props, present error) error {
	fate := p.ahead.Fates[cmd.Ref]
	switch {
	case fate.Known:
		err := props.rare.Get().Wrong
		if props.make == nil {
			err = present
		}
		if err == nil {
			a.super.Family.SkipTo(fate.Name)
			_, err = a.spawn(scr, string(cmd.Name), props, cmd.Ref)
		}
		if err != nil {
			p.err = cmp.Or(p.err, fmt.Errorf("the child %q that it had spawned cannot be made again: %w", cmd.Name, err))
		}
		return err
	case fate.Refused || !p.ahead.Latest:
		return cmp.Or(present, errRefusedThen)
	case present != nil:
		return present
	}
	return p.spawnAnew(a, scr, string(cmd.Name), props, cmd.Ref)
}

// spawnAnew starts a child that is in no record, if there is room for it now.
func (p *repeats) spawnAnew(a *actor, scr *scratch, name string, props *Props, ref abi.Ref) error {
	defer p.lift(false)()
	child, err := a.spawn(scr, name, props, ref)
	if err == nil {
		p.unnoted = append(p.unnoted, child)
	}
	return err
}

// stays reports whether a child stays when its parent is renewed: as it did then, or as follows from the present props.
func (p *repeats) stays(k *actor, now bool) bool {
	fate := p.ahead.Fates[k.uid]
	stays := fate.Renewed > p.renewed[k.uid] || now && !fate.Removed && p.removed[k.uid] == nil
	if stays {
		p.renewed[k.uid]++
	} else {
		delete(p.removed, k.uid)
	}
	return stays
}

// noteUnnoted tells the recorder of children that were started again and whose beginning is in no record.
func (p *repeats) noteUnnoted() {
	slices.SortFunc(p.unnoted, func(a, b *actor) int { return cmp.Compare(len(a.elements), len(b.elements)) })
	for _, a := range p.unnoted {
		if p.sys.here(a.uid) == a && !p.known[a.uid] {
			noteLife(a, record.Began)
			p.known[a.uid] = true
		}
	}
	p.unnoted = nil
}
