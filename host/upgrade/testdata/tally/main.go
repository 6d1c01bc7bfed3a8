// The guest of the tests of upgrades: what the environment says makes it the old code or the new one.
package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

var version = os.Getenv("VERSION")

type tally struct {
	n, hash int64
	mode    string // what Save, or Load, does wrong
}

func (t *tally) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindTimer:
		t.mix("timer " + msg.Text())
		return nil
	case actor.KindTerminated:
		t.mix("terminated")
		return nil
	case actor.KindReply, actor.KindMessage:
	default:
		return actor.ErrUnhandled
	}
	what, rest, _ := strings.Cut(msg.Text(), " ")
	switch what {
	case "get":
		ctx.TellPath("/user/probe", actor.Text(version+" "+strconv.FormatInt(t.n, 10)+" "+strconv.FormatInt(t.hash, 16)))
	case "mode":
		t.mode = rest
	case "timer":
		ctx.After(1, time.Minute, actor.Text("once"))
	case "rate":
		ctx.AtRate(2, time.Minute, actor.Text("rate"))
	case "child":
		ctx.Watch(ctx.Spawn("tally", "", nil))
	case "stash":
		if t.n%2 == 0 {
			ctx.Stash()
			return nil
		}
		t.mix("unstashed")
	case "unstash":
		t.n |= 1
		ctx.Unstash()
	case "ask":
		ctx.AskPath("/user/mute", actor.Text("?"), time.Minute, func(_ *actor.Context, m *actor.Message) error {
			t.mix("answer")
			return nil
		})
	case "dice":
		t.mix(strconv.FormatUint(ctx.Rand().Uint64(), 16))
	case "tell":
		ctx.TellPath("/user/probe", actor.Text(rest+version[:0]))
	case "differ":
		ctx.TellPath("/user/probe", actor.Text("from "+version))
	case "crash2":
		if version == "2" {
			panic("new code")
		}
		t.mix("crash2")
	default:
		t.mix(msg.Text())
	}
	return nil
}

func (t *tally) mix(s string) {
	t.n++
	for i := 0; i < len(s); i++ {
		t.hash = t.hash*31 + int64(s[i])
	}
}

func wrong(ctx *actor.Context, mode, where string) error {
	switch strings.TrimPrefix(mode, where+" ") {
	case "panic":
		panic("oh")
	case "error":
		return errors.New("not now")
	case "loop":
		for {
		}
	case "grow":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			all[0][0]++
		}
	case "send":
		ctx.TellPath("/user/probe", actor.Text("from "+where))
	case "stop":
		ctx.StopSelf()
	case "exit":
		os.Exit(3)
	}
	return nil
}

func (t *tally) Save(ctx *actor.Context, w *abi.Writer) error {
	if err := wrong(ctx, t.mode, "save"); err != nil {
		return err
	}
	switch t.mode {
	case "save garbage":
		w.Encoded("\xff\xff")
		return nil
	case "save nothing":
		return nil
	case "save two":
		w.Int(1)
	}
	if version == "1" {
		w.Array(3)
	} else {
		w.Map(1)
		w.Text("t")
		w.Array(3)
	}
	w.Int(t.n)
	w.Int(t.hash)
	w.Text(t.mode)
	return nil
}

func (t *tally) Load(ctx *actor.Context, r *abi.Reader) error {
	if version != "1" {
		r.Map()
		r.Text()
	}
	r.Array()
	t.n, t.hash, t.mode = r.Int(), r.Int(), r.Text()
	return wrong(ctx, t.mode, "load")
}

func named(r *abi.Reader, w *abi.Writer) error {
	w.Map(1)
	w.Text("t")
	w.Raw(r.Raw())
	return nil
}

func fresh() actor.Actor { return &tally{} }

func init() {
	if version == "1" {
		actor.Register("tally", fresh, actor.Saves(1))
	} else {
		actor.Register("tally", fresh, actor.Saves(2).Migrate(1, named))
	}
	actor.Register("plain", fresh)
}

func main() {}
