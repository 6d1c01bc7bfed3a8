package host

import (
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What was forced into a mailbox beyond its bounds is on the account, and is given back
// when it has gone.
func TestForcedMailIsGivenBack(t *testing.T) {
	var acc account.Account
	pool := account.NewPool("the system", "memory", nil, 0, 0)
	acc.Init(pool, 0)
	var b box.Box
	b.Init(nil, mailbox.Limits{Messages: 100, Bytes: 1 << 20}, &acc)
	for range 20 {
		e := mailbox.New()
		e.SetPayload(make([]byte, 1000))
		b.Force(e)
	}
	b.GiveBack()
	if acc.Of(account.Mailbox) == 0 || pool.Held() == 0 {
		t.Fatal("20 kB are on nobody's account")
	}
	for e := b.Pop(); e != nil; e = b.Pop() {
		e.Free()
	}
	for range box.CalmSpells + 1 {
		if b.Minimal() {
			break
		}
		b.GiveBack()
	}
	if n, held := acc.Of(account.Mailbox), pool.Held(); n != 0 || held != 0 {
		t.Errorf("%d bytes are on the account of an empty mailbox, %d in the pool", n, held)
	}
}
