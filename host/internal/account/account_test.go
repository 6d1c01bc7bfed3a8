package account

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is set, refused and closed: a pool holds what its accounts hold, to a step or
// two for each, and never more than it may but for what was noted.
func TestPoolsHoldWhatAccountsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		system := NewPool("the system", "system.", nil, rapid.Int64Range(0, 1<<20).Draw(t, "system"), 0)
		tree := NewPool("/user/a", "limits.tree.", system, rapid.Int64Range(0, 1<<19).Draw(t, "tree"), 0)
		accounts := make([]Account, 4)
		for i := range accounts {
			accounts[i].Init([]*Pool{system, tree}[i%2], rapid.Int64Range(0, 1<<18).Draw(t, "own"))
		}
		pick := func(t *rapid.T) *Account { return &accounts[rapid.IntRange(0, len(accounts)-1).Draw(t, "account")] }
		noted := false
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				a, k, n := pick(t), Kind(rapid.SampledFrom([]Kind{Base, Memory, Stash, Timers}).Draw(t, "kind")), rapid.Int64Range(0, 1<<17).Draw(t, "n")
				before := a.Of(k)
				err := a.Set(k, n)
				if want := n; err != nil {
					if want = before; n <= before {
						t.Fatalf("less is refused: %v", err)
					}
					if a.Of(k) != want {
						t.Fatal("refused, and changed")
					}
				} else if a.Of(k) != want {
					t.Fatal("not set")
				}
			},
			"note": func(t *rapid.T) { noted = true; pick(t).Note(Watches, rapid.Int64Range(0, 1<<16).Draw(t, "n")) },
			"mailbox": func(t *rapid.T) {
				a := pick(t)
				if n := a.Of(Mailbox); n > 0 && rapid.Bool().Draw(t, "shrink") {
					a.ShrinkMailbox(rapid.Int64Range(0, n).Draw(t, "less"))
				} else {
					_ = a.GrowMailbox(rapid.Int64Range(0, 1<<16).Draw(t, "more"))
				}
			},
			"close": func(t *rapid.T) { pick(t).Close() },
			"": func(t *rapid.T) {
				var all, below int64
				for i := range accounts {
					n := accounts[i].Total()
					if all += n; i%2 == 1 {
						below += n
					}
					if own := accounts[i].own; own > 0 && !noted && n-accounts[i].Of(Memory) > own {
						t.Fatalf("an actor holds %d of %d", n, own)
					}
				}
				for p, n := range map[*Pool]int64{system: all, tree: below} {
					if p.Held() < n || p.Held() > n+int64(len(accounts))*2*Step {
						t.Fatalf("%s holds %d, its actors %d", p.name, p.Held(), n)
					}
					if p.bytes > 0 && !noted && p.Held() > p.bytes {
						t.Fatalf("%s holds %d of %d", p.name, p.Held(), p.bytes)
					}
				}
			},
		})
		for i := range accounts {
			accounts[i].Close()
		}
		if system.Held() != 0 || tree.Held() != 0 {
			t.Fatalf("%d and %d are left", system.Held(), tree.Held())
		}
	})
}

func TestActorsAreCounted(t *testing.T) {
	system := NewPool("the system", "system.", nil, 0, 3)
	tree := NewPool("/user/a", "limits.tree.", system, 0, 2)
	var e *Error
	for range 2 {
		if err := tree.Enter(); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.As(tree.Enter(), &e) || e.Key != "limits.tree.actors" {
		t.Error("the tree's bound", e)
	}
	if system.Enter() != nil || !errors.As(system.Enter(), &e) || e.Key != "system.actors" || !strings.Contains(e.Error(), "the system has reached its limit of 3 actors") {
		t.Error("the system's bound", e)
	}
	tree.Leave()
	if tree.Actors() != 1 || system.Actors() != 2 || tree.Enter() != nil {
		t.Error("one has left", tree.Actors(), system.Actors())
	}
}

// Many at once never get more than there is.
func TestHammer(t *testing.T) {
	p := NewPool("the system", "system.", nil, 100*Step, 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var a Account
			a.Init(p, 0)
			for i := range 5000 {
				if a.Set(Memory, int64(i%50)*Step) == nil && p.Held() > 104*50*Step {
					t.Error("too much")
				}
			}
			a.Close()
		})
	}
	wg.Wait()
	if p.Held() != 0 {
		t.Errorf("%d are left", p.Held())
	}
}

// Guests' memories leave a part of the system's bound to everything else, and of a large tree's.
func TestGuestsLeaveRoomForMail(t *testing.T) {
	const bound = 64 * spare * Step
	system := NewPool("the system", "system.", nil, bound, 0)
	var guest, other Account
	guest.Init(system, 0)
	other.Init(system, 0)
	if err := guest.Set(Memory, bound-bound/spare+1); err == nil {
		t.Error("a guest may have it all")
	} else if e := err.(*Error); !e.Never || e.Key != "system.memory" {
		t.Errorf("%+v", e)
	}
	if err := guest.Set(Memory, bound-bound/spare); err != nil {
		t.Fatal(err)
	}
	if err := other.Set(Memory, Step); err == nil || err.(*Error).Never {
		t.Errorf("%v", err)
	}
	if err := other.GrowMailbox(bound/spare - Step); err != nil {
		t.Error(err)
	}
	if err := other.Set(Base, Step); err != nil {
		t.Error(err)
	}
	if err := other.Set(Timers, 1); err == nil {
		t.Error("more than the bound")
	}

	tree := NewPool("tree", "limits.tree.", NewPool("the system", "system.", nil, 0, 0), bound, 0)
	var alone Account
	alone.Init(tree, 0)
	if err := alone.Set(Memory, bound); err != nil {
		t.Errorf("a tree that has no bound above: %v", err)
	}

	large := NewPool("tree", "limits.tree.", NewPool("the system", "system.", nil, 0, 0), largeTree, 0)
	var many, next Account
	many.Init(large, 0)
	next.Init(large, 0)
	if err := many.Set(Memory, largeTree-largeTree/spare+1); err == nil {
		t.Error("guests may have all of a large tree")
	}
	if err := many.Set(Memory, largeTree-largeTree/spare); err != nil {
		t.Error(err)
	}
	if err := next.Set(Base, Step); err != nil {
		t.Errorf("no room for one more actor: %v", err)
	}
}
