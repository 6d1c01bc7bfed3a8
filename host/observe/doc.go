// Package observe is the one model of a running system for all observers: command
// line, HTTP, metrics and dashboard only render what comes from here.
//
// An [Observer] without queries costs next to nothing: it only listens to events. A query reads the actors without a lock
// that a message needs; all callers within a quarter of a second share one reading. Sampling ([Observer.Trace],
// [Observer.Flow], [Observer.Profile]) costs something while it runs.
//
// All types have a JSON form: names in snake case, times as RFC 3339, durations as
// nanoseconds in fields that end in _ns, sizes in bytes. schema.json describes it; a
// change that is not an addition raises [Version]. Texts of guests are made printable.
//
// docs/architecture/observe.md lists the guarantees.
package observe

// Version is that of the JSON form.
const Version = 1
