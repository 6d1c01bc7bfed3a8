package errs

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// KeyOf is the manifest's key for the bound that an error is about.
func KeyOf(err error, otherwise string) string {
	var bound *account.Error
	var other interface{ ManifestKey() string }
	switch {
	case errors.As(err, &bound):
		return bound.Key
	case errors.As(err, &other):
		return other.ManifestKey()
	case errors.Is(err, ErrTooLarge):
		return "limits.message"
	case errors.Is(err, ErrTooManyChildren):
		return "limits.children"
	case errors.Is(err, sandbox.ErrTooManyInstances):
		return "modules.NAME.limits.instances"
	}
	return otherwise
}
