// Package testkit tests actors, guests and Go alike, in the real system: probes that stand for
// other actors, expectations about messages, events and time, faults, fakes of services.
//
//	func TestCounter(t *testing.T) {
//		k := testkit.New(t)
//		counter := k.Spawn("counter", host.Guest(image, "counter"))
//		p := k.Probe("asker")
//		p.Ask(counter, 3)
//		p.Expect(3)
//	}
//
// The system runs in a single goroutine on a virtual clock, with a seed: the same test does
// the same every time, and waits for nothing. Actors run while the test waits for something,
// and after each thing that it does. Time passes only if there is nothing else to do: when a test waits for
// something that takes time, or calls [Kit.Advance].
// [RealTime] makes a system of the usual kind instead. Package nodekit makes several systems, which are nodes of a cluster.
//
// Failures are reported through testing.TB, at the line of the test: what was expected, what has
// come, and what waits. A Kit and its probes are for the goroutine of the test.
package testkit
