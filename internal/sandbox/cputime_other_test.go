//go:build !unix

package sandbox

import "time"

var began = time.Now()

func cpuTime() time.Duration { return time.Since(began) }
