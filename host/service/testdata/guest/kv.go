package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

func init() {
	actor.Register("kv-user", func() actor.Actor { return kvUser{} })
	actor.Register("kv-watcher", func() actor.Actor { return &kvWatcher{} })
}

// kvUser does what a text says, through the SDK, and answers with a text: what came of it, or
// the error.
//
//	get K, put K V [ttl=D] [if=N|absent], delete K, add K N, list PREFIX [reverse], move FROM TO
//	burst K N: puts 1 to N without waiting, and gets K
//	hammer K N: adds 1, N times, one after the other
type kvUser struct{}

func (kvUser) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	to, correlation := msg.Sender(), msg.Correlation()
	say := func(ctx *actor.Context, text string, err error) error {
		if err != nil {
			text = err.Error()
		}
		return ctx.Answer(to, correlation, actor.Text(text))
	}
	w := strings.Fields(msg.Text())
	var o kv.Write
	store := kv.Store{}
	for len(w) > 0 {
		last := w[len(w)-1]
		if v, ok := strings.CutPrefix(last, "ttl="); ok {
			o.TTL, _ = time.ParseDuration(v)
		} else if v, ok := strings.CutPrefix(last, "if="); ok {
			o.IfVersion, _ = strconv.ParseUint(v, 10, 64)
			o.IfAbsent = v == "absent"
		} else if v, ok := strings.CutPrefix(last, "in="); ok {
			store.Namespace = v
		} else {
			break
		}
		w = w[:len(w)-1]
	}
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(arg(i), 10, 64)
		return n
	}
	count := func(ctx *actor.Context, n int64, err error) error { return say(ctx, strconv.FormatInt(n, 10), err) }
	version := func(ctx *actor.Context, n uint64, err error) error { return count(ctx, int64(n), err) }
	entry := func(ctx *actor.Context, e kv.Entry, err error) error {
		text := string(e.Value)
		if e.Counter {
			text = strconv.FormatInt(e.Count, 10)
		}
		return say(ctx, text+" "+strconv.FormatUint(e.Version, 10), err)
	}
	switch arg(0) {
	case "get":
		store.Get(ctx, arg(1), entry)
	case "put":
		store.Put(ctx, arg(1), []byte(arg(2)), o, version)
	case "delete":
		store.Delete(ctx, arg(1), o, func(ctx *actor.Context, existed bool, err error) error {
			return say(ctx, strconv.FormatBool(existed), err)
		})
	case "add":
		store.Add(ctx, arg(1), number(2), o, count)
	case "list":
		var keys []string
		store.Each(ctx, kv.Query{Prefix: arg(1), Limit: 3, Values: true, Reverse: arg(2) == "reverse"}, func(_ *actor.Context, e kv.Entry) error {
			keys = append(keys, e.Key+"="+string(e.Value))
			return nil
		}, func(ctx *actor.Context, err error) error { return say(ctx, strings.Join(keys, " "), err) })
	case "move":
		store.Get(ctx, arg(1), func(ctx *actor.Context, e kv.Entry, err error) error {
			if errors.Is(err, service.ErrNotFound) {
				return say(ctx, "nothing to move", nil)
			}
			store.Batch(ctx, []kv.Op{kv.DeleteOp(arg(1), kv.Write{IfVersion: e.Version}), kv.PutOp(arg(2), append([]byte{}, e.Value...), kv.Write{IfAbsent: true}), kv.AddOp("moves", 1, kv.Write{})},
				func(ctx *actor.Context, results []kv.Result, err error) error {
					if err != nil {
						return say(ctx, "", err)
					}
					return say(ctx, "moved "+strconv.FormatBool(results[0].Existed)+" "+strconv.FormatInt(results[2].Count, 10), nil)
				})
			return nil
		})
	case "burst":
		for i := range number(2) {
			store.Put(ctx, arg(1), []byte(strconv.FormatInt(i+1, 10)), o, nil)
		}
		store.Get(ctx, arg(1), entry)
	case "hammer":
		var again func(ctx *actor.Context, n int64, err error) error
		left := number(2)
		again = func(ctx *actor.Context, n int64, err error) error {
			if left--; err != nil || left < 0 {
				return count(ctx, n, err)
			}
			store.Add(ctx, arg(1), 1, o, again)
			return nil
		}
		return again(ctx, 0, nil)
	default:
		return say(ctx, "what?", nil)
	}
	return nil
}

// kvWatcher watches the prefix of its arguments and keeps what it is told. Asked "seen" it
// answers with that; "unwatch" ends the watch; "again" watches once more.
type kvWatcher struct {
	watch actor.Ref
	seen  []string
	slow  bool
}

func (k *kvWatcher) Receive(ctx *actor.Context, msg *actor.Message) error {
	if k.slow {
		return actor.ErrUnhandled
	}
	if c, ok := kv.Changes(ctx, msg); ok {
		if c.Gap {
			k.seen = append(k.seen, "gap")
		}
		for _, x := range c.Changes {
			k.seen = append(k.seen, x.Op+":"+x.Key+"="+string(x.Value))
		}
		return nil
	}
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	to, correlation := msg.Sender(), msg.Correlation()
	switch {
	case msg.Is("watch"):
		kv.Watch(ctx, ctx.Args().Text(), true, func(ctx *actor.Context, watch actor.Ref, _ uint64, err error) error {
			if err != nil {
				return ctx.AnswerError(to, correlation, err.Error())
			}
			k.watch = watch
			return ctx.Answer(to, correlation, actor.Uint(watch))
		})
	case msg.Is("unwatch"):
		kv.Unwatch(ctx, k.watch)
		return ctx.Reply(nil)
	case msg.Is("seen"):
		return ctx.Reply(actor.Text(strings.Join(k.seen, " ")))
	case msg.Is("die"):
		ctx.Stop(ctx.Self())
		return ctx.Reply(nil)
	default:
		return actor.ErrUnhandled
	}
	return nil
}
