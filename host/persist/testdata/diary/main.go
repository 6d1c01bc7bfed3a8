// The diary keeps what it is told as events. It does what the texts that it is sent say; what else it does than to store
// notes is for tests.
package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

// note is an event.
type note string

func (n note) MarshalCBOR(w *abi.Writer) { w.Text(string(n)) }
func (note) MessageType() string         { return "diary.note@2" }

// secret is of a type that the schema does not have.
type secret struct{ note }

func (secret) MessageType() string { return "diary.secret@1" }

// torn is an event that is no CBOR.
type torn struct{}

func (torn) MarshalCBOR(w *abi.Writer) { w.Encoded("\x81") }
func (torn) MessageType() string       { return "diary.note@2" }

var schema = new(persist.Schema).Type("diary.note", 2).
	Upcast("diary.note", 1, func(e persist.Event) ([]persist.Event, error) {
		r := abi.NewReader(e.Payload)
		s := r.Text()
		n, _ := persist.Make(note("old " + s))
		return []persist.Event{n}, r.Done()
	}).
	Upcast("diary.pair", 1, func(e persist.Event) ([]persist.Event, error) {
		r := abi.NewReader(e.Payload)
		first, second, _ := strings.Cut(r.Text(), "+")
		a, _ := persist.Make(note(first))
		b, _ := persist.Make(note(second))
		a.Version, b.Version = 2, 1 // the second goes on to the upcaster of version 1
		return []persist.Event{a, b}, r.Done()
	}).
	Drop("diary.gone", 1).
	Adapt(func(e *persist.Event) error {
		if string(e.Payload) == "\x66refuse" {
			return errors.New("the adapter refuses it")
		}
		e.Tags = append(e.Tags, "all")
		return nil
	})

type diary struct {
	log   *persist.Log
	notes []string
}

func (d *diary) Apply(e *persist.Event) error {
	var s actor.Text
	if err := persist.Decode(e, &s); err != nil {
		return err
	}
	if s == "poison" {
		return errors.New("it cannot be applied")
	}
	d.notes = append(d.notes, string(s))
	return nil
}

func (d *diary) Snapshot(w *abi.Writer) { w.Text(strings.Join(d.notes, " ")) }

func (d *diary) Restore(version uint16, r *abi.Reader) error {
	s := r.Text()
	if version != 1 {
		return errors.New("version " + strconv.Itoa(int(version)))
	}
	d.notes = append(strings.Fields(s), "|")
	return nil
}

func (d *diary) Recovered(ctx *actor.Context) error {
	ctx.TellPath("/user/probe", actor.Text("recovered "+strconv.FormatUint(d.log.Last(), 10)+": "+strings.Join(d.notes, " ")))
	return nil
}

func (d *diary) Receive(ctx *actor.Context, msg *actor.Message) error {
	what, rest, _ := strings.Cut(msg.Text(), " ")
	say := func(s string) { ctx.TellPath("/user/probe", actor.Text(s)) }
	var err error
	switch what {
	case "put":
		err = d.log.Persist(ctx, note(rest))
		say("put " + rest)
	case "tag":
		tag, s, _ := strings.Cut(rest, " ")
		err = d.log.Persist(ctx, note(s), tag)
	case "all":
		var list []persist.Event
		for _, s := range strings.Fields(rest) {
			e, _ := persist.Make(note(s))
			if s == "secret" {
				e, _ = persist.Make(secret{})
			}
			list = append(list, e)
		}
		err = d.log.PersistAll(ctx, list...)
	case "nest":
		for _, outer := range []string{"a-outer-1", "a-outer-2"} {
			err = errors.Join(err, d.log.Persist(ctx, note(outer)))
			say(outer)
		}
		for _, inner := range []string{"a-inner-1", "a-inner-2"} {
			err = errors.Join(err, d.log.Persist(ctx, note(inner)))
			say(inner)
		}
	case "secret":
		err = d.log.Persist(ctx, secret{})
	case "torn":
		err = d.log.Persist(ctx, torn{})
	case "large":
		err = d.log.Persist(ctx, note(strings.Repeat("x", 1<<20)))
	case "tags":
		err = d.log.Persist(ctx, note("x"), rest, "twice", "twice")
	case "fail":
		if err = d.log.Persist(ctx, note(rest)); err == nil {
			say("never")
			return errors.New("as told")
		}
	case "snap":
		err = d.log.SaveSnapshot(ctx)
	case "delete":
		n, _ := strconv.ParseUint(rest, 10, 64)
		d.log.DeleteEvents(ctx, n)
	case "unsnap":
		from, to, _ := strings.Cut(rest, " ")
		a, _ := strconv.ParseUint(from, 10, 64)
		b, _ := strconv.ParseUint(to, 10, 64)
		d.log.DeleteSnapshots(ctx, a, b)
	case "state":
		say("state " + strconv.FormatUint(d.log.Last(), 10) + ": " + strings.Join(d.notes, " "))
	case "stop":
		ctx.StopSelf()
	default:
		return actor.ErrUnhandled
	}
	if err != nil {
		say("error " + err.Error())
	}
	return ctx.Reply(actor.Uint(d.log.Last()))
}

// recovery is what the arguments say: words such as off, nosnap, to=3, most=2, snapto=4, snapver=2.
func recovery(ctx *actor.Context) (r persist.Recovery, err error) {
	for _, word := range strings.Fields(ctx.Args().Text()) {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseUint(value, 10, 64)
		switch key {
		case "off":
			r.Off = true
		case "nosnap":
			r.NoSnapshot = true
		case "to":
			r.To = n
		case "most":
			r.Most = n
		case "snapto":
			r.SnapshotTo = n
		case "snapver":
			r.SnapshotVersion = uint16(n)
		}
	}
	return r, nil
}

// plain keeps no events.
type plain struct{}

func (plain) Receive(ctx *actor.Context, msg *actor.Message) error { return ctx.Reply(actor.Int(1)) }

func init() {
	d := persist.Definition{Schema: schema, SnapshotVersion: 1, Recover: recovery}
	make := func(l *persist.Log) persist.Actor { return &diary{log: l} }
	persist.Register("diary", d, make)
	d.Retention = persist.Retention{Every: 3, Keep: 2, Trim: true, When: func(e *persist.Event) bool { return string(e.Payload) == "\x64snap" }}
	persist.Register("keeper", d, make)
	d.Schema, d.Retention = new(persist.Schema).Type("diary.other", 1), persist.Retention{}
	persist.Register("stranger", d, make)
	actor.Register("plain", func() actor.Actor { return plain{} })
}

func main() {}
