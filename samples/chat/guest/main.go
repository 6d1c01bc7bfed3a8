// Chat is a room that people enter by WebSocket. One actor is one room; the gateway makes it when
// the first one enters.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

func main() {}

func init() { actor.Register("room", func() actor.Actor { return newRoom() }) }
