package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// Standard is a [Driver] made from one of package database/sql. The guard (guard.go) does not apply:
// the database itself must enforce that the user of Open can do no more than a grant of rw allows,
// that the user of ReadOnly cannot write, and that neither accepts several statements in one text.
type Standard struct {
	// Open opens the pool that writes. The service closes it.
	Open func(Source) (*stdsql.DB, error)
	// ReadOnly opens the pool that reads; nil: the pool of Open is used, in read-only
	// transactions.
	ReadOnly func(Source) (*stdsql.DB, error)
	// Translate turns an error of the driver into one for the guest, such as a *service.Error
	// with the code Exists or Conflict for a constraint. nil: Failed, with the driver's text.
	Translate func(error) error
}

// Driver returns the driver for [Define].
func (s Standard) Driver() Driver { return standardDriver{s} }

type standardDriver struct{ Standard }

// Open implements [Driver].
func (s standardDriver) Open(ctx context.Context, source Source) (_ Database, err error) {
	d := &standard{translate: s.Translate}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("the database %s: %w", source.Name, err), d.Close())
		}
	}()
	if d.write, err = s.Standard.Open(source); err != nil {
		return nil, err
	}
	d.write.SetMaxOpenConns(source.Readers)
	d.read = d.write
	if s.ReadOnly != nil {
		if d.read, err = s.ReadOnly(source); err != nil {
			return nil, err
		}
		d.read.SetMaxOpenConns(source.Readers)
	}
	return d, errors.Join(d.write.PingContext(ctx), d.read.PingContext(ctx))
}

type standard struct {
	write, read *stdsql.DB
	translate   func(error) error
}

func (d *standard) Close() error {
	var errs []error
	if d.read != nil && d.read != d.write {
		errs = append(errs, d.read.Close())
	}
	if d.write != nil {
		errs = append(errs, d.write.Close())
	}
	return errors.Join(errs...)
}

// Do implements [Database]. Isolation is what the driver's default is.
func (d *standard) Do(ctx context.Context, how Scope, f func(Tx) error) error {
	pool := d.read
	if how.Access == Write {
		pool = d.write
	}
	tx, err := pool.BeginTx(ctx, &stdsql.TxOptions{ReadOnly: how.Access == Read})
	if err != nil {
		return d.failed(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing, after the commit
	if err := f(&standardTx{d, tx}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return d.failed(ctx, err)
	}
	return nil
}

func (d *standard) failed(ctx context.Context, err error) error {
	var known *service.Error
	switch {
	case ctx.Err() != nil:
		return over(ctx)
	case errors.As(err, &known):
		return known
	case d.translate != nil:
		return d.translate(err)
	}
	return service.Errorf(service.Failed, "%v", err)
}

type standardTx struct {
	db *standard
	tx *stdsql.Tx
}

// returnsRows guesses whether a statement has a result: database/sql has different methods for
// statements with and without one.
func returnsRows(sql string) bool {
	upper := strings.ToUpper(strings.TrimLeft(sql, " \t\r\n("))
	for _, verb := range []string{"SELECT", "WITH", "VALUES", "SHOW", "EXPLAIN", "TABLE", "DESCRIBE"} {
		if strings.HasPrefix(upper, verb) {
			return true
		}
	}
	return strings.Contains(upper, "RETURNING")
}

// Run implements [Tx]. What a statement that returns rows has affected is not known.
func (t *standardTx) Run(ctx context.Context, sql string, params []Param, columns func([]string) error, row func([]Value) error) (Outcome, error) {
	args := make([]any, len(params))
	for i, p := range params {
		if args[i] = p.Value.any(); p.Name != "" {
			args[i] = stdsql.Named(p.Name, args[i])
		}
	}
	if !returnsRows(sql) {
		r, err := t.tx.ExecContext(ctx, sql, args...)
		if err != nil {
			return Outcome{}, t.db.failed(ctx, err)
		}
		var out Outcome
		out.Affected, _ = r.RowsAffected() // not every driver has it
		out.LastID, _ = r.LastInsertId()
		return out, columns(nil)
	}
	rows, err := t.tx.QueryContext(ctx, sql, args...)
	if err != nil {
		return Outcome{}, t.db.failed(ctx, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return Outcome{}, t.db.failed(ctx, err)
	}
	if err := columns(names); err != nil {
		return Outcome{}, err
	}
	values, cells, to := make([]Value, len(names)), make([]any, len(names)), make([]any, len(names))
	for i := range to {
		to[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return Outcome{}, t.db.failed(ctx, err)
		}
		for i := range cells {
			if values[i], err = valueOf(cells[i]); err != nil {
				return Outcome{}, err
			}
		}
		if err := row(values); err != nil {
			return Outcome{}, err
		}
	}
	if err := rows.Err(); err != nil {
		return Outcome{}, t.db.failed(ctx, err)
	}
	return Outcome{}, nil
}

// any is what database/sql takes for v.
func (v *Value) any() any {
	switch v.Kind {
	case Int:
		return v.Int
	case Float:
		return v.Float
	case Text:
		return v.Text
	case Blob:
		return v.Blob
	case Bool:
		return v.Int != 0
	case Time:
		return v.Time
	}
	return nil
}

// valueOf converts a column's value of database/sql. A value without an exact counterpart is an
// error.
func valueOf(x any) (Value, error) {
	switch x := x.(type) {
	case nil:
		return Value{}, nil
	case int64:
		return Value{Kind: Int, Int: x}, nil
	case uint64:
		if x <= math.MaxInt64 {
			return Value{Kind: Int, Int: int64(x)}, nil
		}
	case float64:
		return Value{Kind: Float, Float: x}, nil
	case float32:
		return Value{Kind: Float, Float: float64(x)}, nil
	case bool:
		v := Value{Kind: Bool}
		if x {
			v.Int = 1
		}
		return v, nil
	case string:
		return Value{Kind: Text, Text: x}, nil
	case []byte:
		return Value{Kind: Blob, Blob: x}, nil
	case time.Time:
		if inNanoseconds(x) {
			return Value{Kind: Time, Time: x.UTC()}, nil
		}
	}
	return Value{}, service.Errorf(service.BadRequest, "a column has a %T that no value stands for: cast it to a text", x)
}
