package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/kv/operate"
)

// Store is the store of a bundle for its operator: without grants and quotas, otherwise as actors
// see it. It is safe for concurrent use.
type Store struct{ s keeping }

var _ operate.Keys = (*Store)(nil)

// Of returns the store of a running service, and false if it is another service.
func Of(r *service.Running) (*Store, bool) {
	p, ok := r.Provider().(*provider)
	if !ok {
		return nil, false
	}
	return &Store{p.store}, true
}

// Open opens the store in the service's folder of a bundle that does not run. The store must
// exist, and must be closed by the caller.
func Open(dir string, log *slog.Logger) (*Store, error) {
	if _, err := os.Stat(filepath.Join(dir, "db")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no store of the service kv", dir)
	}
	s, err := openFolder(dir, &service.Env{Clock: host.RealClock(), Log: log})
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Close closes a store that Open has opened.
func (s *Store) Close() error { return s.s.close() }

// Namespaces implements operate.Keys.
func (s *Store) Namespaces() (operate.Namespaces, error) {
	list, err := s.s.namespaces()
	out := operate.Namespaces{Namespaces: make([]operate.Namespace, len(list))}
	for i, n := range list {
		out.Namespaces[i] = operate.Namespace{Namespace: n.Name, Keys: n.Keys, Bytes: n.Bytes}
	}
	return out, err
}

func checkName(namespace string) error {
	if !isNamespace(namespace) {
		return service.Errorf(service.BadRequest, "%.63q is not a namespace: small letters, digits, dots, - and _, at most 63", namespace)
	}
	return nil
}

// List implements operate.Keys.
func (s *Store) List(q operate.Query) (operate.KeyPage, error) {
	err := checkName(q.Namespace)
	if err == nil {
		err = asError(checkPrefix(q.Prefix))
	}
	if err == nil && (q.Limit < 0 || q.Limit > PageEntries) {
		err = service.Errorf(service.BadRequest, "limit is %d, which is not between 1 and %d", q.Limit, PageEntries)
	}
	if err != nil {
		return operate.KeyPage{}, err
	}
	page, cursor, err := s.s.page(context.Background(), listing{ns: q.Namespace, prefix: q.Prefix, cursor: q.Cursor, limit: q.Limit, reverse: q.Reverse})
	out := operate.KeyPage{Entries: make([]operate.KeyEntry, len(page)), Cursor: cursor}
	for i := range page {
		out.Entries[i] = page[i].operated()
	}
	return out, err
}

func (e *Entry) operated() operate.KeyEntry {
	return operate.KeyEntry{Key: e.Key, Value: e.Value, Counter: e.Counter, Count: e.Count, Version: e.Version, Expires: e.Expires}
}

// Get implements operate.Keys.
func (s *Store) Get(namespace, key string) (operate.KeyEntry, error) {
	err := checkName(namespace)
	if err == nil {
		err = asError(checkKey(key))
	}
	if err != nil {
		return operate.KeyEntry{}, err
	}
	e, err := s.s.read(context.Background(), namespace, key)
	if err != nil {
		return operate.KeyEntry{}, err
	}
	return e.operated(), nil
}

// Put implements operate.Keys. The write is on the disk when it returns.
func (s *Store) Put(ctx context.Context, p operate.PutKey) (operate.Written, error) {
	if p.Counter != nil {
		return s.count(ctx, p)
	}
	if e, err := s.Get(p.Namespace, p.Key); err == nil && e.Counter {
		return operate.Written{}, service.Errorf(service.Conflict, "the key has a counter, %d, which bytes would replace: give it a count, or delete it first", e.Count)
	}
	if p.Value == nil {
		p.Value = []byte{}
	}
	_, version, err := s.one(ctx, p.Namespace, Op{Kind: OpPut, Key: p.Key, Value: p.Value, TTL: time.Duration(p.TTL), If: p.IfVersion})
	return operate.Written{Version: version}, err
}

// countTries is how often setting a counter begins anew because actors count at the same time.
const countTries = 100

// count sets a counter, or makes it.
func (s *Store) count(ctx context.Context, p operate.PutKey) (operate.Written, error) {
	if len(p.Value) > 0 {
		return operate.Written{}, service.Errorf(service.BadRequest, "value and counter exclude each other")
	}
	for try := 1; ; try++ {
		e, err := s.Get(p.Namespace, p.Key)
		switch {
		case service.CodeOf(err) == service.NotFound:
			e = operate.KeyEntry{Counter: true}
		case err != nil:
			return operate.Written{}, err
		case !e.Counter:
			return operate.Written{}, service.Errorf(service.Conflict, "the key has bytes, which a counter would replace: delete it first")
		case p.TTL != 0:
			return operate.Written{}, service.Errorf(service.BadRequest, "a counter gets its ttl when it is made: delete it first")
		}
		if p.IfVersion != nil && *p.IfVersion != e.Version {
			return operate.Written{}, service.Errorf(service.Conflict, "the entry has version %d", e.Version)
		}
		delta := *p.Counter - e.Count
		if (delta > 0) != (*p.Counter > e.Count) && delta != 0 {
			return operate.Written{}, service.Errorf(service.BadRequest, "%d is too far from the present count, %d: delete it first", *p.Counter, e.Count)
		}
		_, version, err := s.one(ctx, p.Namespace, Op{Kind: OpAdd, Key: p.Key, Delta: delta, TTL: time.Duration(p.TTL), If: &e.Version})
		if code := service.CodeOf(err); code != service.Conflict && code != service.Exists || try == countTries || p.IfVersion != nil {
			return operate.Written{Version: version}, err
		}
	}
}

// Delete implements operate.Keys.
func (s *Store) Delete(ctx context.Context, d operate.DeleteKey) (operate.Deleted, error) {
	res, _, err := s.one(ctx, d.Namespace, Op{Kind: OpDelete, Key: d.Key, If: d.IfVersion})
	return operate.Deleted{Existed: res.Existed}, err
}

func (s *Store) one(ctx context.Context, namespace string, op Op) (Result, uint64, error) {
	err := checkName(namespace)
	if err == nil {
		err = asError(op.check())
	}
	if err != nil {
		return Result{}, 0, err
	}
	results, version, err := s.s.changeThen(ctx, namespace, Quota{}, []Op{op}, Disk, func() {})
	if err != nil {
		return Result{}, 0, err
	}
	return results[0], version, nil
}

// InMemory returns a separate store in memory, for tests. The caller must close it.
func InMemory(clock host.Clock) (*Store, error) {
	s, err := openStore(newMemory(), clock, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}
