package stash

import (
	"testing"

	"github.com/wasmactors/wasmactors/internal/mailbox"
)

func TestStash(t *testing.T) {
	var s Stash
	if s.Len() != 0 || s.Bytes() != 0 || len(s.TakeAll()) != 0 {
		t.Error("not empty")
	}
	put := func(n uint64, size int) {
		e := mailbox.New()
		e.Correlation = n
		e.SetPayload(make([]byte, size))
		s.Put(e)
	}
	put(1, 10)
	one := s.Bytes()
	put(2, 110)
	if s.Len() != 2 || s.Bytes() != 2*one+100 {
		t.Errorf("%d, %d bytes", s.Len(), s.Bytes())
	}
	var seen []uint64
	s.Each(func(e *mailbox.Envelope) { seen = append(seen, e.Correlation) })
	all := s.TakeAll()
	if len(seen) != 2 || seen[0] != 1 || len(all) != 2 || all[0].Correlation != 1 || all[1].Correlation != 2 {
		t.Errorf("%v, %v", seen, all)
	}
	if s.Len() != 0 || s.Bytes() != 0 {
		t.Error("something is left")
	}
	put(3, 0)
	if all = s.TakeAll(); len(all) != 1 || all[0].Correlation != 3 {
		t.Errorf("%v", all)
	}
}
