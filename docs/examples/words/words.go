// Package words names things of its own in manifests.
package words

import (
	"time"

	"github.com/wasmactors/wasmactors/docs/examples/jitter"
	"github.com/wasmactors/wasmactors/docs/examples/priority"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Words are what this program's manifests may name besides what every manifest may.
func Words() bundle.Words {
	return bundle.Words{
		Mailboxes: map[string]func(host.MailboxLimits) host.Mailbox{
			"small-first": priority.New(2, func(e *host.Envelope) int { return min(e.Size()/1024, 1) }),
		},
		Jitters: map[string]backoff.Jitter{"triangular": jitter.Triangular(0.3)},
		Curves: map[string]func(least, most time.Duration) backoff.Curve{
			"square-root": func(least, most time.Duration) backoff.Curve {
				return backoff.CurveFunc(func(n int) time.Duration { return min(squareRoot(least, n), most) })
			},
		},
	}
}

// Load reads a manifest that may use the words, and grant any of our services.
func Load(path string, vars bundle.Variables) (*bundle.Manifest, error) {
	return Words().Load(path, vars, all.Kinds()...)
}
