// A guest that shows what its clones have in common: it answers every message with what
// each source of randomness gives, a line each.
package main

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand"
	randv2 "math/rand/v2"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

var (
	began = time.Now()
	token = cryptoRand() // what a package draws for itself, such as a session key
	seed  = maphash.MakeSeed()
)

func cryptoRand() uint64 {
	var b [8]byte
	if _, err := crand.Read(b[:]); err != nil {
		panic(err)
	}
	v := uint64(0)
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

func order() (s string) {
	m := map[int]bool{}
	for i := range 64 {
		m[i] = true
	}
	for i := range m {
		s += fmt.Sprint(i, " ")
	}
	return s
}

type clone struct{}

func (*clone) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Is("fail") {
		return errors.New("as asked")
	}
	var prime [16]byte
	_, _ = crand.Reader.Read(prime[:])
	return ctx.Reply(actor.Text(strings.Join([]string{
		"crypto/rand.Read " + fmt.Sprint(cryptoRand()),
		"crypto/rand.Reader " + fmt.Sprint(prime),
		"Context.Rand " + fmt.Sprint(ctx.Rand().Uint64()),
		"math/rand " + fmt.Sprint(rand.Uint64()),
		"math/rand/v2 " + fmt.Sprint(randv2.Uint64()),
		"maphash " + fmt.Sprint(maphash.String(maphash.MakeSeed(), "x")),
		"map order " + order(),
		"a package's token " + fmt.Sprint(token),
		"a package's maphash " + fmt.Sprint(maphash.String(seed, "x")),
		"a package's time " + began.UTC().String(),
		"the type of crypto/rand.Reader " + fmt.Sprintf("%T", crand.Reader),
	}, "\n")))
}

func init() { actor.Register("clone", func() actor.Actor { return &clone{} }) }

func main() {}
