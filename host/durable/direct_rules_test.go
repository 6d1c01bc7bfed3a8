package durable

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// TestDirectOfAStoreThatTakesNoMore: a store that is frozen or has failed, or has much that waits for the disk, takes no turn directly, and
// the first two write nothing; what is sent then is let in or refused as Admit and Note would have it.
func TestDirectOfAStoreThatTakesNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		have    func(*Store)
		refuses bool // messages
		writes  bool // them
	}{
		"frozen": {have: (*Store).Freeze},
		"failed": {have: func(s *Store) { _ = s.fail(errors.New("broken")) }, refuses: true},
		"behind": {have: func(s *Store) { s.held.Store(mostHeld + 1) }, writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			turn := &record.Handled{Actor: 7, First: 1, Position: 1, Outbox: abi.AppendEnd(abi.AppendSend(nil, 9, "", 0, 0, nil, []byte{1})), Alone: true}
			message := &record.Envelope{Kind: abi.KindMessage, Sender: 9, Position: 1, Payload: []byte{1}}
			if err := s.Accept(7, 1, message, false); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Handled(turn); !ok || s.Figures().Records != 2 {
				t.Fatalf("taken: %v, %d records", ok, s.Figures().Records)
			}
			c.have(s)
			for _, alone := range []bool{true, false} {
				if turn.Alone = alone; alone {
					turn.First, turn.Position = turn.First+1, turn.Position+1
				}
				if after, ok := s.Handled(turn); ok || after != 0 {
					t.Errorf("a turn is taken at once, alone: %v", alone)
				}
			}
			if n := s.Figures().Records; n != 2 {
				t.Errorf("%d turns were written", n-2)
			}
			if err := s.Accept(7, 1, message, false); (err != nil) != c.refuses {
				t.Errorf("a message: %v", err)
			}
			if err := s.Accept(7, 1, message, true); err != nil {
				t.Errorf("a message that must be taken: %v", err)
			}
			if wrote := s.Figures().Records > 2; wrote != c.writes {
				t.Errorf("%d messages were written", s.Figures().Records-2)
			}
		})
	}
}
