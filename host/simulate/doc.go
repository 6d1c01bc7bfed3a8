// Package simulate runs systems in virtual time under faults that a seed chooses, and checks what must hold whatever
// happens. docs/guide/simulate.md describes it.
//
// A [Plan] is all that a seed chooses. A [Run] is what stands between one system and its faults: it chooses the order of
// turns, injects faults, keeps a hash chain over the history, and checks the general invariants. Whoever has made the system
// drives it: host/scenario for the scenario files of a bundle, [World] for systems made by Go code. [Sweep] tries many
// seeds, [Shrink] makes a failing case smaller.
//
// The same plan gives the same run, to the byte, on any machine and beside any number of others. Faults are drawn for each
// opportunity alone: by seed, class, place, and number of the opportunity. So leaving one out does not change the others.
package simulate
