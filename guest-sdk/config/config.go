// Package config gives an actor its settings and secrets.
//
//	config.String(ctx, "db.host", func(ctx *actor.Context, host string, err error) error { ... })
//	config.Secret(ctx, "db.password", func(ctx *actor.Context, password []byte, err error) error { ... })
//
// A value is what the manifest, a file or the environment says; from the environment, .env files
// and the manifest all values are texts, which the functions for other types parse.
package config

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Name is the name of the service, and of the grant.
const Name = "config"

// Timeout is how long a request waits for its answer.
var Timeout = 10 * time.Second

// Raw gets a value as CBOR, valid until then returns. The error is service.ErrNotFound if there
// is none, service.ErrDenied if the key is not granted.
func Raw(ctx *actor.Context, key string, then func(ctx *actor.Context, value []byte, err error) error) {
	service.Ask(ctx, Name, "get", keyed(key), Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		return then(ctx, m.Payload(), nil)
	})
}

// String gets a value that is a text, or a number or a bool as text.
func String(ctx *actor.Context, key string, then func(ctx *actor.Context, value string, err error) error) {
	Raw(ctx, key, func(ctx *actor.Context, value []byte, err error) error {
		text := ""
		if err == nil {
			text, err = asText(key, value)
		}
		return then(ctx, text, err)
	})
}

// Int gets a value that is a whole number, or a text of one.
func Int(ctx *actor.Context, key string, then func(ctx *actor.Context, value int64, err error) error) {
	scalar(ctx, key, "a whole number", func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }, then)
}

// Float gets a value that is a number, or a text of one.
func Float(ctx *actor.Context, key string, then func(ctx *actor.Context, value float64, err error) error) {
	scalar(ctx, key, "a number", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, then)
}

// Bool gets a value that is true or false, or a text that strconv.ParseBool takes.
func Bool(ctx *actor.Context, key string, then func(ctx *actor.Context, value bool, err error) error) {
	scalar(ctx, key, "true or false", strconv.ParseBool, then)
}

// Duration gets a value such as 1m30s.
func Duration(ctx *actor.Context, key string, then func(ctx *actor.Context, value time.Duration, err error) error) {
	scalar(ctx, key, "a duration such as 1m30s", time.ParseDuration, then)
}

func scalar[T any](ctx *actor.Context, key, what string, parse func(string) (T, error), then func(*actor.Context, T, error) error) {
	String(ctx, key, func(ctx *actor.Context, text string, err error) error {
		var v T
		if err == nil {
			if v, err = parse(text); err != nil {
				err = &service.Error{Code: service.BadRequest, Text: "the value of " + key + " is not " + what}
			}
		}
		return then(ctx, v, err)
	})
}

// asText is a scalar as text.
func asText(key string, value []byte) (string, error) {
	r := abi.NewReader(value)
	text := ""
	switch r.Peek() {
	case abi.TypeText:
		text = r.Text()
	case abi.TypeUint:
		text = strconv.FormatUint(r.Uint(), 10)
	case abi.TypeNint:
		text = strconv.FormatInt(r.Int(), 10)
	case abi.TypeBool:
		text = strconv.FormatBool(r.Bool())
	case abi.TypeFloat:
		text = strconv.FormatFloat(r.Float(), 'g', -1, 64)
	default:
		return "", &service.Error{Code: service.BadRequest, Text: "the value of " + key + " is not a single value: use Raw"}
	}
	if err := r.Done(); err != nil {
		return "", &service.Error{Code: service.Internal, Text: "the answer is not as expected: " + err.Error()}
	}
	return text, nil
}

// Secret gets a secret; the bytes are the actor's. What the host shows of the actor hides them,
// as docs/services/config.md says: keep them out of names, and do not change them before they
// are logged.
func Secret(ctx *actor.Context, key string, then func(ctx *actor.Context, secret []byte, err error) error) {
	service.Ask(ctx, Name, "secret", keyed(key), Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		r := m.Reader()
		secret := r.Bytes()
		if bad := r.Done(); bad != nil {
			return then(ctx, nil, &service.Error{Code: service.Internal, Text: "the answer is not as expected"})
		}
		return then(ctx, secret, nil)
	})
}

// Value is an entry of List; Value is CBOR.
type Value struct {
	Key   string
	Value actor.Raw
}

// List is the values with a prefix that the actor may read, sorted by key, beginning after a key: at most
// 100; more says that there are others.
func List(ctx *actor.Context, prefix, after string, then func(ctx *actor.Context, values []Value, more bool, err error) error) {
	args := actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("prefix")
		w.Text(prefix)
		w.Text("after")
		w.Text(after)
	})
	service.Ask(ctx, Name, "list", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, false, err)
		}
		var out []Value
		more := false
		r := m.Reader()
		for n := r.Map(); n > 0 && r.OK(); n-- {
			switch r.Text() {
			case "values":
				for i := r.Array(); i > 0 && r.OK(); i-- {
					if r.Array() != 2 {
						r.Fail(abi.ErrArity)
						break
					}
					v := Value{Key: r.Text()}
					v.Value = append(actor.Raw(nil), r.Raw()...)
					out = append(out, v)
				}
			case "more":
				more = r.Bool()
			default:
				r.Skip()
			}
		}
		if bad := r.Done(); bad != nil {
			return then(ctx, nil, false, &service.Error{Code: service.Internal, Text: "the answer is not as expected"})
		}
		return then(ctx, out, more, nil)
	})
}

// Watch tells the actor when values change whose keys match one of up to 16 patterns, in which
// * stands for any run of characters: by a message that [ChangeOf] reads. It ends with the actor, not with a restart.
// then may be nil.
func Watch(ctx *actor.Context, patterns []string, then func(ctx *actor.Context, err error) error) {
	args := actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("keys")
		w.Array(len(patterns))
		for _, p := range patterns {
			w.Text(p)
		}
	})
	service.Ask(ctx, Name, "watch", args, Timeout, func(ctx *actor.Context, _ *actor.Message, err error) error {
		if then == nil {
			return nil
		}
		return then(ctx, err)
	})
}

// Unwatch ends the watch.
func Unwatch(ctx *actor.Context) { service.Tell(ctx, Name, "unwatch", nil) }

// ChangeOf is the keys whose values have changed, if m is such a message of the service.
// At most 100 are named.
func ChangeOf(ctx *actor.Context, m *actor.Message) (keys []string, ok bool) {
	from, granted := ctx.Service(Name)
	if !granted || m.Kind() != actor.KindMessage || m.Sender() != from {
		return nil, false
	}
	r := m.Reader()
	if r.Peek() != abi.TypeMap {
		return nil, false
	}
	for n := r.Map(); n > 0 && r.OK(); n-- {
		if r.Text() != "changed" {
			r.Skip()
			continue
		}
		ok = true
		for i := r.Array(); i > 0 && r.OK(); i-- {
			keys = append(keys, r.Text())
		}
	}
	return keys, ok && r.Done() == nil
}

type keyed string

// MarshalCBOR implements actor.Encoder.
func (k keyed) MarshalCBOR(w *abi.Writer) {
	w.Map(1)
	w.Text("key")
	w.Text(string(k))
}
