//go:build !(linux && amd64)

package instrcount

import "os/exec"

// Mark begins or ends a span.
func Mark() error { return ErrUnsupported }

// Run starts a program that calls Mark, and returns its spans when it has ended.
func Run(*exec.Cmd) ([]Span, error) { return nil, ErrUnsupported }
