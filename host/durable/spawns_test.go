package durable

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// A durable actor cannot have a child with another mailbox: the spawn fails, and says why. It has once ended the process, and each one that
// repeated the turn.
func TestChildrenWithOtherMailboxesAreRefused(t *testing.T) {
	ordered := func(c host.Config) host.Config {
		return c.WithSpawnOptions(func([]byte) (host.SpawnOptions, error) {
			return host.SpawnOptions{Mailbox: mailbox.New(mailbox.Priority).Make}, nil
		})
	}
	image := puppetImage(t)
	props := Props{"parent": puppet(image, rec(byte(abi.KindSpawnFailed), 0, send("/user/told", add))), "told": puppet(image)}
	w := withBank(t, t.TempDir(), newBank(), props, ordered)
	parent, err := w.Lookup("/user/parent")
	if err != nil {
		t.Fatal(err)
	}
	own := secret.Secret(w.store.secret)
	key := new(secret.Keys).Child(&own, parent.UID())
	w.tell("parent", script(rec(0, 0, abi.AppendSpawn(nil, abi.ChildRef(key, 0, 0), "puppet", "kid", script(), []byte{0xa0}))))
	eventually(t, func() bool { return w.report("told") == 1 })
	for _, p := range []host.Props{
		props["told"].WithMailbox(mailbox.New(mailbox.Priority).Make),
		host.Func(func(*host.Context, host.Message) error { return nil }).WithDurable(),
	} {
		if _, err := w.Spawn("other", p); !errors.Is(err, host.ErrBadProps) {
			t.Error(err)
		}
	}
	dir := w.killed()
	w.close()
	w = withBank(t, dir, newBank(), props, ordered)
	if n := w.report("told"); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.close()
}
