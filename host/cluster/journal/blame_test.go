package journal

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/record"
)

// answerOf is how a turn fails that is answered by f; nil: it does not, or is not answered.
func answerOf(f func(*record.Turn)) *abi.Failure {
	turn := &record.Turn{Done: 1}
	if err, there := turn.Ask(f, func() {}); there && err != nil {
		return record.FailureOf(err, 1)
	}
	return nil
}

// No error that an actor can cause is one of the host, whose failures escalate, and each says what to do in the manifest.
func TestNoErrorOfAnActorIsTheHosts(t *testing.T) {
	stored := func(bytes int) persist.Turn { return persist.Turn{Record: make([]byte, bytes)} }
	for name, c := range map[string]struct {
		do   func(*Journal, *key, *record.Turn)
		kind abi.FailureKind
		says string
	}{
		"too much in a turn": {func(j *Journal, k *key, t *record.Turn) { j.store(t, k, stored(MaxBytes+1)) }, abi.FailureMemoryLimit, "limits.durable"},
		"too much waits": {func(j *Journal, k *key, t *record.Turn) {
			j.bytes = mostWaiting
			j.store(t, k, stored(1))
		}, abi.FailureMemoryLimit, "limits.durable"},
		"too much in memory": {func(j *Journal, k *key, t *record.Turn) {
			j.kept = DefaultKept
			j.store(t, k, stored(1))
		}, abi.FailureMemoryLimit, "keyed.idle"},
		"a key for which there is no room": {func(j *Journal, k *key, t *record.Turn) {
			j.kept, k.done = DefaultKept, func(err error) { t.Answer(blamed(err)) }
			b := (&frame{form: turnForm, epoch: 3, number: 1}).encode()
			j.take(k, 7, 0, []cluster.LogEntry{{At: 8, Record: b}})
		}, abi.FailureMemoryLimit, "keyed.idle"},
		"a full log": {func(j *Journal, k *key, t *record.Turn) {
			k.records = 1
			j.store(t, k, stored(1))
		}, abi.FailureMemoryLimit, "cluster journal delete"},
		"a full log, and much of the key": {func(j *Journal, k *key, t *record.Turn) {
			k.bytes = mostOfKey
			j.store(t, k, stored(1))
		}, abi.FailureMemoryLimit, "cluster journal delete"},
		"no key":             {func(_ *Journal, _ *key, t *record.Turn) { t.Answer(blamed(errKind)) }, abi.FailureInit, "spread over the cluster"},
		"an event too early": {func(_ *Journal, _ *key, t *record.Turn) { t.Answer(blamed(errStart)) }, abi.FailureInit, "in its start"},
		"a shard that has gone": {func(j *Journal, k *key, t *record.Turn) {
			k.part.served = false
			j.store(t, k, stored(1))
		}, abi.FailureHost, ErrMoved.Error()},
		"another owner": {func(j *Journal, k *key, t *record.Turn) {
			k.part.fence = 9
			j.store(t, k, stored(1))
		}, abi.FailureHost, ErrAnew.Error()},
	} {
		j, k := keyOf(t, &replaced{full: true})
		f := answerOf(func(t *record.Turn) { c.do(j, k, t) })
		if f == nil || f.Kind != c.kind || !strings.Contains(f.Reason, c.says) {
			t.Errorf("%s: %v", name, f)
		}
		if f != nil && f.Kind != abi.FailureHost && strings.Contains(f.Reason, record.Unrecorded) || j.bytes != 0 && j.bytes != mostWaiting {
			t.Errorf("%s: %v, %d bytes wait", name, f, j.bytes)
		}
	}
}

// Whose failure each error of this package is, and of the log: a new one has to be judged.
func TestEachErrorIsJudged(t *testing.T) {
	judged := map[string]string{
		"ErrMoved": "the host's", "ErrAnew": "the host's", "ErrSpoilt": "the host's: a member has written it", "errUnsure": "the host's: the directory does not answer",
		"ErrCrowded": "the actor's", "errBusy": "the actor's", "errFull": "the actor's", "errKind": "the actor's", "errStart": "the actor's",
		"ErrLives": "told to operators", "ErrNothing": "told to operators", "errErased": "told to operators",
		"ErrMany": "told to senders", "errLate": "told to senders", "errFrame": "part of ErrSpoilt",
		"ErrFenced": "ErrAnew", "ErrBusy": "tried again", "ErrFull": "the actor's", "ErrLong": "ErrSpoilt",
	}
	for _, dir := range []string{".", ".."} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if dir == ".." && f.Name() != "log.go" || !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), dir+"/"+f.Name(), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				g, _ := d.(*ast.GenDecl)
				if g == nil || g.Tok != token.VAR {
					continue
				}
				for _, s := range g.Specs {
					for _, n := range s.(*ast.ValueSpec).Names {
						if strings.HasPrefix(strings.ToLower(n.Name), "err") && judged[n.Name] == "" {
							t.Errorf("%s: whose failure is it?", n.Name)
						}
					}
				}
			}
		}
	}
}

// An actor that keeps events and is no key fails by itself, and those that are go on.
func TestAnActorThatIsNoKey(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	props := l.journal.Events().Props(definition, func(log *persist.Log) persist.Actor { return &cart{life: l, log: log} }, MaxBytes)
	for i := range 3 {
		if _, err := l.system.Spawn(fmt.Sprint("loose", i), props); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(time.Second)
	if has, err := s.atLast(l, "k0"); err != nil || len(has) != 0 {
		t.Errorf("%v, %v", has, err)
	}
}

// A turn that stores more than a key may have has failed by itself: that is no failure of the host, whose failures escalate. What a turn deletes
// again has to be written, too.
func TestATooLargeTurnIsItsOwnFailure(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	ask := func(n note) (err error) {
		p, err := l.system.Request(l.region, keyed.For("k0", n))
		if err != nil {
			t.Fatal(err)
		}
		s.pass(5 * time.Second) // the actor ends then
		select {
		case m := <-p.Answer():
			return m.Err()
		default:
			return errors.New("no answer")
		}
	}
	refused := 0
	for size := uint64(MaxBytes - 400); size < MaxBytes+40; size += 40 {
		err := ask(note{Add: size, Size: size})
		var failed *host.TurnError
		switch {
		case err == nil: // the key has room for one only
			l.journal.Erase("carts", "k0", 10*time.Second, func(done error) { err = done })
			if s.pass(5 * time.Second); err != nil {
				t.Fatal(err)
			}
		case !errors.As(err, &failed) || failed.Failure.Kind != abi.FailureMemoryLimit:
			t.Errorf("%d bytes: %v", size, err)
		default:
			refused++
		}
	}
	var failed *host.TurnError
	if err := ask(note{Add: 1, Size: MaxBytes / 3, Before: 3}); !errors.As(err, &failed) || failed.Failure.Kind != abi.FailureMemoryLimit {
		t.Errorf("what is deleted in the same turn: %v", err)
	}
	if err := ask(note{Add: 1, Size: MaxBytes / 3, Before: 1}); err != nil {
		t.Errorf("the key cannot be used any more: %v", err)
	}
	if refused == 0 {
		t.Error("nothing was too large")
	}
}
