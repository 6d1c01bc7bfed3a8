package config

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// ErrNoSecret is the error of a [Provider] if there is no such secret.
var ErrNoSecret = errors.New("config: there is no such secret")

// MaxSecret is the most bytes of a secret, MinSecret the fewest: a shorter one could not be redacted
// without matching unrelated texts.
const (
	MaxSecret = redact.MaxSecret
	MinSecret = redact.MinSecret
)

// secret gets a secret, and has the system redact it before anyone else has it.
func (p *provider) secret(ctx context.Context, key string, x Secret) ([]byte, error) {
	secret, err := p.fetch(ctx, key, x)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoSecret):
		p.log.Warn("a secret is missing", "key", key)
		return nil, service.Errorf(service.NotFound, "the secret %s is missing", key)
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		p.log.Error("a secret cannot be read", "key", key, "error", err)
		return nil, &service.Error{Code: service.Unavailable, Text: "the secret " + key + " cannot be read; the log says why", Err: err}
	}
	if err := p.env.System.Redaction().Hide(secret); err != nil {
		p.log.Error("a secret cannot be redacted, so no actor gets it", "key", key, "error", err)
		return nil, &service.Error{Code: service.Unavailable, Text: "the secret " + key + " cannot be redacted: " + err.Error(), Err: err}
	}
	return secret, nil
}

func (p *provider) fetch(ctx context.Context, key string, x Secret) ([]byte, error) {
	switch {
	case x.Env != "":
		v, ok := p.env.Getenv(x.Env)
		if !ok {
			return nil, ErrNoSecret
		}
		return []byte(v), nil
	case x.Provider != "":
		b, err := p.providers[x.Provider].Secret(ctx, key)
		return bytes.Clone(b), err
	}
	path := p.path(x.File)
	before, err := private(path, x.Shared)
	if err != nil {
		return nil, err
	}
	data, err := regular.Read(ctx, path, MaxSecret+2)
	if err != nil {
		return nil, err
	}
	after, err := private(path, x.Shared)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(before, after) {
		return nil, errors.New("the file was being replaced; the next request may find it")
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	return bytes.TrimSuffix(data, []byte("\r")), nil
}
