// Package costs counts the instructions of parts that have no limits of their own in bench/guard:
// mailboxes beside the usual one, and timers among many others.
package costs
