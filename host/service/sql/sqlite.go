package sql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/wasmactors/wasmactors/host/service"
)

// SQLite is the driver of SQLite, as Go code without cgo. Each connection is SQLite in a separate,
// bounded memory, so that a fault in it does not spread.
//
// One connection writes, others read at the same time (WAL).
var SQLite Driver = sqliteDriver{}

type sqliteDriver struct{}

// fences numbers the names of VFSs, which are global in the process.
var fences atomic.Uint64

// Sizes of SQLite.
const (
	pageSize        = 4096
	checkpointPages = 1000 // of the log, above which it is copied into the database
	smallestMemory  = 2 << 20
)

// Open implements [Driver].
func (sqliteDriver) Open(ctx context.Context, s Source) (_ Database, err error) {
	path, err := s.path()
	if err != nil {
		return nil, err
	}
	d := &sqlite{source: s, fence: newFence(path, s.WAL), vfs: "wasmactors-" + strconv.FormatUint(fences.Add(1), 10), yields: map[*Scope]struct{}{}}
	vfs.Register(d.vfs, d.fence)
	d.write = d.pool(Write, 1)
	d.read = d.pool(Read, s.Readers)
	defer func() {
		if err != nil {
			_ = d.Close()
			err = fmt.Errorf("the database %s in %s: %w", s.Name, path, err)
		}
	}()
	// The writer first: it makes the file, and the log that readers need.
	for _, p := range []*stdsql.DB{d.write, d.read} {
		if err := p.PingContext(ctx); err != nil {
			return nil, err
		}
	}
	return d, syncDir(filepath.Dir(path))
}

// path is the path of the database, without links.
func (s *Source) path() (string, error) {
	if s.DSN != "" {
		return "", errors.New("dsn is for other drivers; SQLite takes file")
	}
	path := s.File
	if path == "" {
		dir, err := s.State()
		if err != nil {
			return "", fmt.Errorf("without file the database is kept in the state of the bundle: %w", err)
		}
		path = filepath.Join(dir, s.Name+".db")
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(filepath.Join(dir, filepath.Base(path))); err != nil {
		return "", err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
		if err != nil {
			return "", err
		}
		return path, f.Close()
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	return path, nil
}

// sqlite is an open database.
type sqlite struct {
	source      Source
	fence       *fence
	vfs         string
	write, read *stdsql.DB

	pages atomic.Int64 // of the log, after the last commit
	swept time.Time    // when keys that are too old were looked for; of the connection that writes

	mu     sync.Mutex
	yields map[*Scope]struct{} // long transactions that read
}

func (d *sqlite) Close() error {
	err := errors.Join(d.read.Close(), d.write.Close()) // the last to close copies the log
	vfs.Unregister(d.vfs)
	return err
}

// Do implements [Database].
func (d *sqlite) Do(ctx context.Context, how Scope, f func(Tx) error) error {
	pool := d.read
	if how.Access == Write {
		pool = d.write
	}
	c, err := pool.Conn(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return service.Errorf(service.Busy, "the connections to the database were busy all the time")
		}
		return d.translate(ctx, err)
	}
	defer func() { _ = c.Close() }()
	if how.Yield != nil {
		d.mu.Lock()
		d.yields[&how] = struct{}{}
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.yields, &how)
		}()
	}
	var result error
	bad := c.Raw(func(conn any) error {
		var broken bool
		if broken, result = conn.(*connection).do(ctx, how, f); broken {
			return driver.ErrBadConn // it is closed, and its memory is given back
		}
		return nil
	})
	if result == nil && bad != nil {
		return d.translate(ctx, bad)
	}
	return result
}

// afterCommit keeps the log short. The connection is the writer's, between two transactions.
func (d *sqlite) afterCommit(c *sqlite3.Conn) {
	pages := d.pages.Load()
	if pages < checkpointPages {
		return
	}
	if pages*pageSize > d.source.WAL/4 {
		d.mu.Lock()
		for how := range d.yields {
			how.Yield()
		}
		d.mu.Unlock()
	}
	old := c.SetInterrupt(context.Background())
	defer c.SetInterrupt(old)
	if _, _, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil && !errors.Is(err, sqlite3.BUSY) {
		d.source.Warn("the log of a database was not copied into it", "database", d.source.Name, "err", err)
	}
}

// pool is a pool of connections.
func (d *sqlite) pool(access Access, n int) *stdsql.DB {
	db := stdsql.OpenDB(&connector{d, access})
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// connector opens connections for a pool. They are only used through Raw.
type connector struct {
	db     *sqlite
	access Access
}

func (c *connector) Driver() driver.Driver { return nil }

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (_ driver.Conn, err error) {
	defer catch(&err)
	s := &c.db.source
	uri := "file:" + theDatabase + "?vfs=" + c.db.vfs
	if c.access == Read {
		uri += "&mode=ro"
	}
	conn, err := sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, max(s.Memory, smallestMemory)), uri)
	if err != nil {
		return nil, err
	}
	x := &connection{db: c.db, c: conn, access: c.access, kept: map[string]*kept{}, mine: map[string]*kept{}}
	if err := x.prepare(); err != nil {
		_ = x.Close()
		return nil, err
	}
	return x, nil
}

// prepare prepares a connection for guests' statements.
func (x *connection) prepare() error {
	s := &x.db.source
	if err := x.c.BusyTimeout(s.Busy); err != nil {
		return err
	}
	pragmas := "PRAGMA cache_size=-" + strconv.FormatInt(s.Memory/4/1024, 10) + "; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
	if x.access == Read {
		pragmas += "PRAGMA query_only=ON;"
	} else {
		pragmas += "PRAGMA page_size=" + strconv.Itoa(pageSize) + "; PRAGMA journal_mode=WAL; PRAGMA synchronous=" + s.Sync +
			"; PRAGMA journal_size_limit=" + strconv.FormatInt(s.WAL/4, 10) + "; PRAGMA max_page_count=" + strconv.FormatInt(max(s.Size/pageSize, 1), 10) + ";"
	}
	if err := x.c.Exec(pragmas); err != nil {
		return err
	}
	if x.access == Write {
		mode, err := x.ask("PRAGMA journal_mode")
		if err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("its journal is in mode %q and cannot become wal", mode)
		}
		x.c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error { x.db.pages.Store(int64(pages)); return nil })
	} else if v, err := x.ask("PRAGMA query_only"); err != nil || v != "1" {
		return fmt.Errorf("it cannot be opened for reading only: %q, %w", v, err)
	}
	if err := replaceFunctions(x.c); err != nil {
		return err
	}
	if err := guard(x.c, s); err != nil {
		return err
	}
	return x.c.SetAuthorizer(x.authorize)
}

// ask returns the single value of a statement of the service.
func (x *connection) ask(sql string) (string, error) {
	st, _, err := x.c.Prepare(sql)
	if err != nil {
		return "", err
	}
	defer func() { _ = st.Close() }()
	if !st.Step() {
		return "", st.Err()
	}
	return st.ColumnText(0), nil
}
