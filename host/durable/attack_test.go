package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/secret"
)

// noise is CBOR that cannot be compressed.
func noise(n int) []byte {
	b := append([]byte{0x5a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
	_, _ = rand.Read(b[5:])
	return b
}

// Guests that fill the store with messages that wait, and start a child for each when it is full, before there is a checkpoint, do not break
// it: what was admitted has room to be handled. Then others go on.
func TestAFullStoreHasRoomForWhatWasAdmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 50 MB")
	}
	image := puppetImage(t)
	props := Props{"neighbour": puppet(image)}
	const parents = 6
	for i := range parents {
		props[fmt.Sprint("m", i)] = puppet(image)
	}
	w := mustOpen(t, t.TempDir(), props, func(o *Options) { o.Size, o.Sync, o.Recovery = MinSize, Never, time.Hour })
	defer w.close()
	w.store.writing.Lock() // no checkpoint
	keys, refs, own := [parents]abi.RefKey{}, [parents]host.Ref{}, secret.Secret(w.store.secret)
	for i := range parents {
		var err error
		if refs[i], err = w.Lookup(fmt.Sprint("/user/m", i)); err != nil {
			t.Fatal(err)
		}
		keys[i] = new(secret.Keys).Child(&own, refs[i].UID())
		if err := w.Operate().Pause(refs[i], false); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for n := 0; n < 10_000 && err == nil; n++ {
		spawns := abi.AppendSpawn(nil, abi.ChildRef(keys[n%parents], 0, uint64(n/parents)), "puppet", "", noise(12_000), []byte{0xa0})
		err = w.TellPath(refs[n%parents].Path(), script(rec(0, last, spawns)))
	}
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	before := w.store.Figures().Records
	for _, r := range refs {
		if err := w.Operate().Unpause(r, false); err != nil {
			t.Fatal(err)
		}
	}
	idle := uint64(0)
	eventually(t, func() bool { // all is handled
		last := idle
		idle = w.store.Figures().Records
		return idle > before+1000 && idle == last
	})
	if f := w.store.Figures(); f.Err != nil || f.Bytes > f.Limit || !f.Full {
		t.Errorf("%+v", f)
	}
	w.store.writing.Unlock()
	w.checkpoint()
	eventually(t, func() bool { return w.TellPath("/user/neighbour", add) == nil })
	if n := w.report("neighbour"); n != 1 {
		t.Errorf("the neighbour has counted %d", n)
	}
}
