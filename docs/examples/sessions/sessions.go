// Package sessions has an actor for each key: see docs/guide/keyed.md.
package sessions

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Carts are a cart for each user, for ten minutes after its last use; beyond a thousand the one that
// was used least recently goes.
func Carts(cart host.Props) host.Props {
	return keyed.New(cart).WithIdle(10 * time.Minute).WithMax(1000).WithAtLimit(keyed.Evict).Props()
}

// Put puts a thing into a user's cart and returns what is in it.
func Put(ctx context.Context, sys *host.System, carts host.Ref, user, thing string) (string, error) {
	return host.AskAs[string](ctx, sys, carts, keyed.For(user, thing))
}

// Ask asks whoever has a path, such as /user/carts/ann, whether it is there or not.
func Ask(ctx context.Context, sys *host.System, path string, v any) (host.Message, error) {
	to, err := sys.AddressOf(path)
	if err != nil {
		return host.Message{}, err
	}
	return sys.Ask(ctx, to.To, to.Message(v))
}

// Users are those that have a cart, page by page.
func Users(ctx context.Context, sys *host.System, carts host.Ref) (users []string, err error) {
	for page := (keyed.Page{}); ; {
		entries, err := keyed.Keys(ctx, sys, carts, page)
		if err != nil || len(entries) == 0 {
			return users, err
		}
		for _, e := range entries {
			users = append(users, e.Key)
		}
		page.After = entries[len(entries)-1].Key
	}
}
