// Crawler reads the pages of web sites politely: each host is asked by one actor, one request at
// a time, with a pause between them, and only for what its robots.txt allows.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

func main() {}

func init() {
	actor.Register("frontier", func() actor.Actor { return &frontier{} })
	actor.Register("host", func() actor.Actor { return &host{} })
	actor.Register("index", func() actor.Actor { return &index{} })
}
