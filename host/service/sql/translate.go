package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/wasmactors/wasmactors/host/service"
)

// errMemory is the value with which SQLite panics when it is out of memory.
var errMemory = errors.New("sql: SQLite is out of memory")

// panicError is an error that SQLite has panicked with.
func panicError(p any) error {
	if err, ok := p.(error); ok && strings.Contains(err.Error(), "out of memory") {
		return errMemory
	}
	return fmt.Errorf("sql: SQLite: %v", p)
}

// catch turns a panic into an error.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = panicError(p)
	}
}

func asError(err error, to **service.Error) bool { return errors.As(err, to) }

// translateFor is translate for a statement that was refused.
func (d *sqlite) translateFor(ctx context.Context, x *connection, err error) error {
	if (errors.Is(err, sqlite3.AUTH) || errors.Is(err, sqlite3.ERROR)) && x.denied != "" {
		if x.wrote {
			return service.Errorf(service.ReadOnly, "the statement makes %s: use the op exec or tx to write", x.denied)
		}
		return service.Errorf(service.Denied, "no statement may use %s", x.denied)
	}
	return d.translate(ctx, err)
}

// translate turns an error of SQLite into one for the guest.
func (d *sqlite) translate(ctx context.Context, err error) error {
	var known *service.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, errMemory) {
		return service.Errorf(service.TooLarge, "the statement needs more than the %d bytes of memory that a connection has", d.source.Memory)
	}
	if errors.Is(err, driver.ErrBadConn) {
		return service.Errorf(service.Unavailable, "the connection to the database is gone")
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return over(ctx)
	}
	var x sqlite3.ExtendedErrorCode
	if !errors.As(err, &x) {
		return &service.Error{Code: service.Internal, Text: "the service has failed; its log has why", Err: err}
	}
	if trouble := service.DiskTrouble(err); trouble != "" {
		d.source.Warn("a database fails", "database", d.source.Name, "err", err)
		return &service.Error{Code: service.Unavailable, Text: trouble + "; nothing was written", Err: err}
	}
	text := strings.TrimPrefix(err.Error(), "sqlite3: ")
	switch x.Code() {
	case sqlite3.CONSTRAINT:
		switch x {
		case sqlite3.CONSTRAINT_UNIQUE, sqlite3.CONSTRAINT_PRIMARYKEY, sqlite3.CONSTRAINT_ROWID:
			return service.Errorf(service.Exists, "%s", text)
		}
		return service.Errorf(service.Conflict, "%s", text)
	case sqlite3.BUSY, sqlite3.LOCKED:
		return service.Errorf(service.Busy, "another process holds the database")
	case sqlite3.READONLY, sqlite3.PERM:
		if x == sqlite3.READONLY_DIRECTORY || x == sqlite3.READONLY_CANTINIT || x == sqlite3.READONLY_RECOVERY {
			return &service.Error{Code: service.Unavailable, Text: "the folder of the database is read-only; nothing was written", Err: err}
		}
		return service.Errorf(service.ReadOnly, "%s", text)
	case sqlite3.TOOBIG:
		return service.Errorf(service.TooLarge, "a text or blob of more than %d bytes, or a statement of more than %d", d.source.Value, d.source.Statement)
	case sqlite3.FULL:
		if d.fence.full.Swap(0) > 0 {
			return service.Errorf(service.TooLarge, "the transaction would make the log longer than its %d bytes", d.source.WAL)
		}
		return service.Errorf(service.Quota, "the database has reached its limit of %d bytes", d.source.Size)
	case sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.PROTOCOL:
		d.source.Warn("a database fails", "database", d.source.Name, "err", err)
		return &service.Error{Code: service.Unavailable, Text: "the database cannot be read or written; the log has why", Err: err}
	case sqlite3.INTERRUPT:
		return over(ctx)
	case sqlite3.MISUSE, sqlite3.INTERNAL:
		return &service.Error{Code: service.Internal, Text: "the service has failed; its log has why", Err: err}
	}
	return service.Errorf(service.BadRequest, "%s", text)
}
