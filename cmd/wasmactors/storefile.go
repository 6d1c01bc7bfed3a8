package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

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

// forkStore copies a store into a folder, with --at as it was then.
func forkStore(c *cli.Context, env *environment, m *bundle.Manifest, s *durable.Store, dir string) error {
	o, err := m.Store.Options()
	if err != nil {
		return err
	}
	at, err := pastTime(c.String("at"), time.Now())
	if err != nil {
		return err
	}
	o.Dir = dir
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	r, w := io.Pipe()
	exported := s.Export
	if !at.IsZero() {
		exported = s.ExportAll
	}
	written := make(chan error, 1)
	go func() {
		err := exported(ctx, w)
		written <- err
		_ = w.CloseWithError(err)
	}()
	if at.IsZero() {
		err = durable.Import(ctx, o, r)
	} else {
		err = durable.ImportAt(ctx, o, r, at)
	}
	cancel(err)
	_ = r.CloseWithError(err)
	if wrong := <-written; err == nil {
		err = wrong
	}
	if errors.Is(err, durable.ErrNotBack) {
		if back := s.Figures().Back; !back.IsZero() {
			return fmt.Errorf("%w: it goes back to about %s", err, back.Format(time.RFC3339))
		}
		return fmt.Errorf("%w: store.keep says how far it does", err)
	}
	if err != nil {
		return err
	}
	return storeMade(env, dir)
}

// pastTime is a time as RFC 3339 has it, or how long before now; zero if nothing is said.
func pastTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.After(now) {
		return t, usage("--at must be a time such as 2026-03-01T12:00:00Z that has passed, or how long ago it was, such as 2h; not %q", text)
	}
	return t, nil
}
