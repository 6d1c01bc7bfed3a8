package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/supervision"
)

// Whatever is derived differs in every bit of its input, and is nothing but a function of it.
func TestSecretDerivesByInput(t *testing.T) {
	type input struct {
		secret byte
		p      secret.Purpose
		of     abi.Ref
		n      uint64
	}
	seen := map[[32]byte]input{}
	rapid.Check(t, func(t *rapid.T) {
		in := input{
			rapid.Byte().Draw(t, "secret"), secret.Purpose(rapid.IntRange(1, int(secret.ForJitter)).Draw(t, "purpose")),
			abi.Ref(rapid.Uint64().Draw(t, "ref")), rapid.Uint64().Draw(t, "n"),
		}
		s := Secret{9: in.secret}
		v := s.Derive(in.p, in.of, in.n)
		if other, known := seen[v]; known && other != in {
			t.Fatalf("%v and %v give the same", in, other)
		}
		seen[v] = in
		if s.Derive(in.p, in.of, in.n) != v {
			t.Fatal("not a function")
		}
		for _, near := range []input{
			{in.secret ^ 1, in.p, in.of, in.n}, {in.secret, in.p ^ 128, in.of, in.n}, {in.secret, in.p, in.of ^ 1<<63, in.n},
			{in.secret, in.p, in.of, in.n ^ 1<<63}, {in.secret, in.p, abi.Ref(in.n), uint64(in.of)},
		} {
			if s := (Secret{9: near.secret}); near != in && s.Derive(near.p, near.of, near.n) == v {
				t.Fatalf("%v and %v give the same", in, near)
			}
		}
	})
}

// attacker is what a guest knows: its start payload, and so the refs of all its children.
type attacker struct {
	start abi.Start
	known map[abi.Ref]bool
}

// keys are those that the attacker has or can make of what it has.
func (a *attacker) keys() []abi.RefKey {
	keys := []abi.RefKey{{}, a.start.RefKey, abi.RefKey(a.start.Seed)}
	for _, k := range []abi.RefKey{a.start.RefKey, abi.RefKey(a.start.Seed)} {
		for _, of := range []uint64{0, uint64(a.start.Self), uint64(a.start.Parent)} {
			var made abi.RefKey
			binary.LittleEndian.PutUint64(made[:8], abi.SipHash(k, of))
			binary.LittleEndian.PutUint64(made[8:], abi.SipHash(k, of+1))
			keys = append(keys, made)
		}
	}
	return keys
}

// An actor that has its start payload, with its ref, key and seed, cannot compute the ref,
// key or seed of any other: it tries what it can make of them.
func TestAttackerKnowsItsChildrenOnly(t *testing.T) {
	l := newLab(t, supervision.Default())
	victims := map[abi.Ref]string{l.user.uid: "/user", l.services.uid: "/system"}
	for range 20 {
		v := l.spawn("", puppet(t).WithChildren(Child{"kid", newCounter()}))
		victims[v.UID()] = v.Path()
		victims[l.at(v.Name()+"/kid").UID()] = v.Path() + "/kid"
		victims[abi.ChildRef(childKeyOf(guestOf(l.table.Get(v.UID()))), 0, 0)] = v.Path() + "'s next"
	}
	for range 20 {
		victims[l.System.outside.NewRef()] = "an ask"
	}
	mallory := l.table.Get(l.spawn("mallory", puppet(t)).UID())
	a := attacker{known: map[abi.Ref]bool{mallory.uid: true}}
	a.start = abi.Start{Self: mallory.uid, Parent: l.user.uid, RefKey: childKeyOf(guestOf(mallory)), Seed: guestOf(mallory).keys.Seed}
	delete(victims, l.user.uid) // it is told this one
	secret := l.Secret()
	for _, known := range [][]byte{a.start.RefKey[:], a.start.Seed[:]} {
		if bytes.Contains(secret[:], known[:8]) || bytes.Contains(secret[:], known[8:]) {
			t.Error("a part of the secret is in a start payload")
		}
	}
	for _, key := range a.keys() {
		for n := range uint64(2000) {
			for _, m := range []uint64{n, n ^ uint64(a.start.Self), n ^ uint64(a.start.Parent), uint64(a.start.Parent) + n} {
				if who, hit := victims[abi.ChildRef(key, 0, m)]; hit {
					t.Fatalf("%s is ChildRef(%x, %#x)", who, key, m)
				}
			}
		}
	}
	for uid := range victims {
		if g := guestOf(l.table.Get(uid)); g != nil && (childKeyOf(g) == a.start.RefKey || g.keys.Seed == a.start.Seed) {
			t.Errorf("%s has mallory's key or seed", g.actor.path)
		}
	}
}

// Every incarnation has randomness of its own, and keeps its children's key.
func TestIncarnationsDrawTheirOwn(t *testing.T) {
	l := newLab(t, supervision.Default())
	ref := l.spawn("guest", puppet(t))
	a := l.table.Get(ref.UID())
	c := guestOf(a)
	seeds := map[[abi.SeedSize]byte]bool{}
	key := childKeyOf(c)
	for range 3 {
		seeds[c.keys.Seed] = true
		l.tell(ref, Raw(script(now(abi.AppendFail(nil, "again")))))
	}
	if len(seeds) != 3 || childKeyOf(c) != key || a.Incarnation() != 3 {
		t.Errorf("%d seeds in %d incarnations; the key has changed: %v", len(seeds), a.Incarnation(), childKeyOf(c) != key)
	}
}

func TestSecrets(t *testing.T) {
	first := func(cfg Config) (abi.Ref, Secret) {
		s, err := New(cfg.WithManual())
		if err != nil {
			t.Fatal(err)
		}
		ref, err := s.Spawn("a", newCounter())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		return ref.UID(), s.Secret()
	}
	cfg := NewConfig("x")
	a, secret := first(cfg)
	b, other := first(cfg)
	if a == b || secret == other {
		t.Error("two systems share a secret that nobody gave them")
	}
	if c, again := first(cfg.WithSecret(secret)); c != a || again != secret {
		t.Error("the secret given back gives other refs")
	}
	d, _ := first(cfg.WithSeed(5))
	if e, _ := first(cfg.WithSeed(5)); e != d {
		t.Error("the same seed gives other refs")
	}
	if e, _ := first(cfg.WithSeed(6)); e == d {
		t.Error("another seed gives the same refs")
	}
	if d.Node() != 0 || a.Node() != 0 {
		t.Errorf("nodes %d and %d", a.Node(), d.Node())
	}
}

func BenchmarkDerive(b *testing.B) {
	s := secret.New()
	b.ReportAllocs()
	for i := range b.N {
		s.Derive(secret.ForGuest, abi.Ref(i), 0)
	}
}

func BenchmarkSpawnNative(b *testing.B) {
	s, _ := manual(b, nil)
	p := newCounter()
	b.ReportAllocs()
	for range b.N {
		ref, err := s.Spawn("", p)
		if err != nil {
			b.Fatal(err)
		}
		s.RunUntilIdle(10)
		s.Stop(ref)
		s.RunUntilIdle(10)
	}
}

// What only an actor may know, its start envelope, is in no event, report or trace:
// not if the start fails, nor if the guest has no use for it, or sends it on.
func TestStartsAreNotShown(t *testing.T) { everyManner(t, rowStartsAreNotShown) }

func rowStartsAreNotShown(t *testing.T) {
	for name, start := range map[string][]byte{
		"fails":     onTrap(abi.KindStart),
		"unhandled": on(abi.KindStart, abi.AppendUnhandled(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newStage(t, nil)
			ref := l.spawn("g", puppet(t, on(abi.KindTimer), start))
			seed, key := l.secret.Guest(ref.UID(), 0)
			l.run()
			shown := 0
			for _, e := range l.raw(EventFailed, EventDeadLetter, EventUnhandled) {
				var payload []byte
				switch {
				case e.Mail != nil && e.Mail.Kind == abi.KindStart && e.Mail.Size > 0:
					payload = e.Mail.Payload
					if !strings.Contains(e.Report(), "not shown") {
						t.Error(e.Report())
					}
				case e.Dead != nil && e.Dead.Kind == abi.KindStart && e.Dead.Size > 0:
					payload = e.Dead.Payload
				default:
					continue
				}
				shown++
				if bytes.Contains(payload, seed[:]) || bytes.Contains(payload, key[:]) {
					t.Errorf("a secret is in %+v", e)
				}
			}
			if shown == 0 {
				t.Error("nothing was told of the start")
			}
		})
	}
	t.Run("traced", func(t *testing.T) {
		l := newStage(t, nil)
		ref := l.spawn("g", puppet(t, on(abi.KindTimer), on(abi.KindStart, abi.AppendForward(nil, l.probe.UID(), ""))))
		l.run()
		seed, key := l.secret.Guest(ref.UID(), 1)
		_, key = l.secret.Guest(ref.UID(), 0)
		starts := 0
		stop := must(l.View().Tap(ref, 1<<20, func(m *Tapped) {
			if m.Kind == abi.KindStart {
				starts++
			}
			if bytes.Contains(m.Payload, seed[:]) || bytes.Contains(m.Payload, key[:]) {
				t.Errorf("a secret is in %+v", *m)
			}
		}, nil))(t)
		defer stop()
		l.say(ref, script(trap()))
		l.run()
		if starts == 0 {
			t.Error("no start was seen")
		}
	})
}
