package life

import "github.com/wasmactors/wasmactors/abi"

// OfStart is a failure as that of a start.
func OfStart(f *abi.Failure) *abi.Failure {
	if f.Kind == abi.FailureInit {
		return f
	}
	g := *f
	g.Kind = abi.FailureInit
	g.Reason = f.Kind.String()
	if f.Reason != "" {
		g.Reason += ": " + f.Reason
	}
	return &g
}
