package durable

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// History implements record.Historian: it reads what Options.Keep keeps of the past, and then the log.
func (s *Store) History(ctx context.Context, from record.Place, each func(*record.Record) error) (record.Place, error) {
	h := history{ctx: ctx, each: each, at: from}
	for s.past != nil {
		first := s.log.First()
		if wal.Position(h.at.Batch) >= first {
			break
		}
		opt := s.logged
		var err error
		if opt.FS, err = wal.Folder(filepath.Join(s.past.dir, logFolder)); err != nil {
			return h.at, err
		}
		for r, err := range wal.ReadMoved(opt, wal.Position(h.at.Batch), first) {
			if err = h.take(&r, err); err != nil {
				return h.at, err
			}
		}
		if h.at.Batch = uint64(first); s.log.First() == first { // else further files have been moved
			break
		}
	}
	for r, err := range s.log.Read(wal.Position(h.at.Batch)) {
		if err = h.take(&r, err); err != nil {
			return h.at, err
		}
	}
	return h.at, nil
}

// history hands out records.
type history struct {
	ctx  context.Context
	each func(*record.Record) error
	at   record.Place
	all  records
}

func (h *history) take(r *wal.Record, err error) error {
	if err == nil {
		err = context.Cause(h.ctx)
	}
	if err != nil {
		return err
	}
	if r.First {
		h.at.Batch = uint64(r.At)
	}
	v, err := h.all.next(r)
	if err != nil {
		return fmt.Errorf("position %d: %w", r.At, err)
	}
	if uint64(r.At) <= h.at.Last {
		return nil
	}
	h.at.Last = uint64(r.At)
	if x, ok := v.(*record.Record); ok {
		return h.each(x)
	}
	return nil
}
