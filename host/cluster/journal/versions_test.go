package journal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// migrations lead from the first version of a state to the second one, which is the same.
var migrations = map[uint16]func(host.Raw) (any, error){1: func(b host.Raw) (any, error) { return b, nil }}

// While nodes are replaced by such with newer code, keys that the newer code has written come to nodes with the older one. There they do not
// begin: each question is told why, nothing is written, and nothing is tried without end. Where the code is newer they go on from all
// that was confirmed, and so they do everywhere when the last older node has gone.
func TestOlderCodeMeetsWhatNewerCodeHasKept(t *testing.T) {
	const keys = 24
	s := newSim(1, map[string]int{}, broken{})
	defer s.close()
	s.states, s.early = true, false
	s.version = 1
	s.start()
	s.pass(3 * time.Second)
	old := s.running()[0]
	key := func(i int) string { return fmt.Sprint("k", i) }
	store := func(l *life, i int) {
		s.number++
		if s.ask(l, key(i), s.number) == nil {
			t.Fatal("it cannot be asked")
		}
	}
	for i := range keys {
		store(old, i)
	}
	s.pass(3 * time.Second)
	s.version = 2
	s.start()
	s.pass(10 * time.Second) // some keys are on each of them
	newer := s.running()[1]
	for i := range keys {
		store(newer, i)
	}
	s.pass(3 * time.Second)
	if n := s.stats["stored"]; n != 2*keys || newer.journal.Counts().Stored == 0 || old.journal.Counts().Stored == keys {
		t.Fatalf("%v, %d by newer code", s.stats, newer.journal.Counts().Stored)
	}
	newer.over = true
	newer.node.Leave(func(error) {})
	s.pass(10 * time.Second) // all keys are where the code is older
	var failures []*abi.Failure
	sub := old.system.Subscribe(10, func(e *host.Event) bool {
		if e.Kind == host.EventFailed {
			failures = append(failures, e.Failure)
		}
		return false
	})
	defer sub.Close()
	before := map[string][]byte{}
	dump := func(i int) (all []byte) {
		for _, e := range s.LogOf("carts", key(i)) {
			all = append(all, e.Record...)
		}
		return all
	}
	loaded := old.journal.Counts().Loaded
	stuck := 0
	for i := range keys {
		before[key(i)] = dump(i)
		has, err := s.atLast(old, key(i))
		switch {
		case err == nil && len(has) != 2:
			t.Errorf("%s has %v", key(i), has)
		case err != nil:
			if stuck++; !strings.Contains(err.Error(), "newer code") || !bytes.Equal(dump(i), before[key(i)]) {
				t.Errorf("%s: %v, %d bytes in the log", key(i), err, len(dump(i)))
			}
		}
	}
	if n := old.journal.Counts().Loaded - loaded; stuck == 0 || stuck == keys || n > 40*keys {
		t.Errorf("%d of %d keys do not begin, and %d times one was read", stuck, keys, n)
	}
	for _, f := range failures {
		if f.Kind == abi.FailureHost || !strings.Contains(f.Error(), "newer code") {
			t.Errorf("an event says: %v", f)
		}
	}
	t.Logf("%d of %d keys do not begin where the code is older, %d events, read %d times", stuck, keys, len(failures), old.journal.Counts().Loaded-loaded)
	s.start() // the newer code comes back, and the older one goes
	s.pass(10 * time.Second)
	old.over = true
	old.node.Leave(func(error) {})
	s.pass(10 * time.Second)
	for i := range keys {
		if has, err := s.atLast(s.running()[0], key(i)); err != nil || len(has) != 2 {
			t.Errorf("%s at the end: %v, %v", key(i), has, err)
		}
	}
	if s.failure != "" {
		t.Error(s.failure)
	}
}
