// Redis is enough of a Redis server for redis-cli and redis-benchmark. The front reads commands and writes answers; the keys are
// in shards, keyed actors that each have a part of them.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

func main() {}

func init() {
	actor.Register("front", func() actor.Actor { return newFront() })
	actor.Register("shard", func() actor.Actor { return newShard() })
}
