package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// exportStore writes a store into a new file, for its owner alone.
func exportStore(c *cli.Context, s *durable.Store, file string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usage("%s exists: export writes a new file", file)
	}
	if err != nil {
		return err
	}
	err = s.Export(c.Context, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

// importStore makes the store of a bundle of what was exported.
func importStore(c *cli.Context, env *environment, m *bundle.Manifest, file string) error {
	o, err := m.Store.Options()
	if err != nil {
		return err
	}
	f, err := regular.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := durable.Import(c.Context, o, f); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return storeMade(env, o.Dir)
}

func storeMade(env *environment, dir string) error {
	_, err := fmt.Fprintf(env.stdout, "the store %s is there\n", dir)
	return err
}

// forkStore copies a store into a folder.
func forkStore(c *cli.Context, env *environment, m *bundle.Manifest, s *durable.Store, dir string) error {
	o, err := m.Store.Options()
	if err != nil {
		return err
	}
	o.Dir = dir
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := s.Export(ctx, w)
		written <- err
		_ = w.CloseWithError(err)
	}()
	err = durable.Import(ctx, o, r)
	cancel(err)
	_ = r.CloseWithError(err)
	if wrong := <-written; err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	return storeMade(env, dir)
}
