package testkit

import "time"

// Spells bounds how much work may follow from one thing that a test does.
func Spells(n int) Option { return func(o *options) { o.spells = n } }

// RealWait bounds how long a test waits for goroutines.
func RealWait(d time.Duration) Option { return func(o *options) { o.wait = d } }
