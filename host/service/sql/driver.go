package sql

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// Driver opens databases of one kind. SQLite's is built in; others are added with [Define],
// mostly as a [Standard].
type Driver interface {
	// Open opens a database. An error here prevents the system from starting.
	Open(ctx context.Context, source Source) (Database, error)
}

// Source is what a manifest says of a database.
type Source struct {
	Name string // that grants use
	File string // absolute; "" if the manifest names none
	DSN  string // of other drivers than SQLite
	// State returns the folder for this service's state, or service.ErrNoState.
	State func() (string, error)

	Size      int64         // the database's at most, in bytes
	WAL       int64         // the write-ahead log's at most, in bytes
	Memory    int64         // a connection's at most, in bytes
	Value     int64         // a text's or blob's at most, in bytes
	Statement int           // a statement's at most, in bytes
	Params    int           // of a statement
	Readers   int           // connections for reading
	Busy      time.Duration // how long to wait for another process
	Sync      string        // full or normal

	Warn func(text string, args ...any) // writes to the log; never nil
}

// Database is an open database. Any goroutine may call it.
type Database interface {
	// Do calls f in a transaction, which is committed if f returns nil and rolled back otherwise.
	// A commit is as durable as the manifest says before Do returns. It waits for a connection
	// until ctx is done. f's error is returned as it is; others are *service.Error.
	Do(ctx context.Context, how Scope, f func(Tx) error) error
	// Close waits for the calls of Do, whose contexts the caller has cancelled.
	Close() error
}

// Scope says what a transaction is for.
type Scope struct {
	Access Access
	// Single is a transaction of one statement, which needs no BEGIN.
	Single bool
	// Yield is called, from another goroutine, if the transaction blocks others: it then should
	// end soon. Nil if it is short anyway.
	Yield func()
}

// Access says whether a transaction reads or writes.
type Access uint8

// The kinds of access.
const (
	Read  Access = iota // nothing can be written
	Write               // one at a time
)

// Tx is a transaction. It must be used by one goroutine, and not after Do has returned.
type Tx interface {
	// Run runs one statement. columns is called once with the names of the result's columns, unless
	// it has none, then row with each row. values are valid during the call.
	// An error of either ends the statement and is returned as it is.
	Run(ctx context.Context, sql string, params []Param, columns func(names []string) error, row func(values []Value) error) (Outcome, error)
}

// Param is a parameter, by position, or by name without the prefix character.
type Param struct {
	Name  string // "": by position
	Value Value
}

// Outcome is the outcome of a statement.
type Outcome struct {
	Affected int64 // rows inserted, updated or deleted by the statement itself
	LastID   int64 // the id of the last inserted row, 0 if there is none
}

// over is the error for a context that has ended.
func over(ctx context.Context) error {
	if context.Cause(ctx) == context.DeadlineExceeded || ctx.Err() == context.DeadlineExceeded {
		return service.Errorf(service.Timeout, "the statement took longer than it may")
	}
	var e *service.Error
	if asError(context.Cause(ctx), &e) {
		return e
	}
	return service.Errorf(service.Cancelled, "the request is over")
}
