// A guest that makes words of lines: see docs/guide/flow.md.
package main

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	guestflow "github.com/wasmactors/wasmactors/guest-sdk/flow"
)

func init() {
	guestflow.Register("splitter", func(*actor.Context) flow.Stream {
		lines := flow.Inbox(16, flow.DropNewest, flow.Texts)
		words := flow.Each(lines, strings.Fields)
		return flow.To(words, flow.GiveTo(0, "words", flow.Texts))
	})
}

func main() {}
