// Package actortest runs actors in ordinary Go tests: no wasm, no host.
//
//	func TestCounter(t *testing.T) {
//		counter := actortest.Spawn(t, "counter")
//		if got := counter.Send(actor.Int(3)).Reply().Int(); got != 3 {
//			t.Errorf("%d", got)
//		}
//	}
//
// The harness is one actor's host: what a turn asks for is not carried out but
// shown. The test plays the others: it answers asks, hands messages from one
// actor to another, moves the clock. Time and randomness are the test's, so the
// same test does the same every time.
//
// What differs from wasm: package variables are not reset by a restart,
// and nothing bounds a turn's time and memory. Several actors, and tests in
// parallel, are fine: their turns run one at a time.
package actortest
