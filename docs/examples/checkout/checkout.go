// Package checkout shows how an actor is tested: a guest in the real system with host/testkit, and
// without wasm with guest-sdk/actortest. docs/guide/testing.md explains it.
package checkout

import "github.com/wasmactors/wasmactors/host"

// Cart is the props of the guest's actor; it may ask the stock.
func Cart(module *host.Module) host.Props {
	return host.GuestOf(module, "cart").WithCapabilities(host.Capabilities{Send: []string{"/user/stock"}})
}

// Stock has so many of each item. It answers with what is left.
func Stock(items map[string]int) host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		var item string
		if err := m.Decode(&item); err != nil {
			return err
		}
		if items[item] == 0 {
			return ctx.ReplyError("sold out")
		}
		items[item]--
		return ctx.Reply(items[item])
	})
}
