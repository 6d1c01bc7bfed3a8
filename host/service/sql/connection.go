package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/wasmactors/wasmactors/host/service"
)

// connection is one connection to SQLite. It is for one goroutine at a time.
type connection struct {
	db     *sqlite
	c      *sqlite3.Conn
	access Access

	own    bool            // the statement is the service's, not a guest's
	denied string          // why the statement was refused; "" if it was not
	wrote  bool            // it was refused because it writes
	ctx    context.Context // of the transaction

	kept map[string]*kept // compiled statements, by their text
	mine map[string]*kept // those of the service, which no guest may run: there are few
	now  uint64           // counts uses
}

// kept is a compiled statement for reuse.
type kept struct {
	st   *sqlite3.Stmt
	used uint64
	cols []column
	busy bool
}

// column is what is known of a result's column before the first row.
type column struct {
	name string
	as   Kind // Bool or Time, if its declaration says so; else Null
}

// Bounds of the statements that a connection keeps.
const (
	keptStatements = 32
	keptLength     = 4096
)

var errNoDriver = errors.New("sql: connections are used by Raw alone")

// Prepare, Begin and Close implement [driver.Conn].
func (x *connection) Prepare(string) (driver.Stmt, error) { return nil, errNoDriver }
func (x *connection) Begin() (driver.Tx, error)           { return nil, errNoDriver }

func (x *connection) Close() (err error) {
	defer catch(&err)
	for sql := range x.kept {
		x.forget(sql)
	}
	for _, k := range x.mine {
		_ = k.st.Close()
	}
	return x.c.Close()
}

// authorize is called for every action of a statement while it is compiled.
func (x *connection) authorize(action sqlite3.AuthorizerActionCode, third, fourth, schema, _ string) sqlite3.AuthorizerReturnCode {
	if x.own || allowed(x.access == Write, action, third, fourth, schema) {
		return sqlite3.AUTH_OK
	}
	if x.denied == "" {
		x.denied = actionName(action, third, fourth)
		x.wrote = allowed(true, action, third, fourth, schema)
	}
	return sqlite3.AUTH_DENY
}

// do runs a transaction. broken says that the connection must not be used again.
func (x *connection) do(ctx context.Context, how Scope, f func(Tx) error) (broken bool, err error) {
	x.ctx = ctx
	x.c.SetInterrupt(ctx)
	defer func() {
		x.ctx = nil
		x.c.SetInterrupt(context.Background())
		if p := recover(); p != nil {
			broken = true
			if err = x.db.translate(ctx, panicError(p)); service.CodeOf(err) == service.Internal {
				x.db.source.Warn("SQLite has failed internally; the connection is closed", "database", x.db.source.Name, "err", p)
			}
		}
	}()
	if !how.Single {
		begin := "BEGIN"
		if how.Access == Write {
			begin = "BEGIN IMMEDIATE"
		}
		if err := x.command(begin); err != nil {
			return false, x.db.translate(ctx, err)
		}
	}
	if err := f(x); err != nil {
		return x.rollback() != nil, err
	}
	if !how.Single {
		if err := x.command("COMMIT"); err != nil {
			return x.rollback() != nil, x.db.translate(ctx, err)
		}
	}
	if how.Access == Write {
		x.db.afterCommit(x.c)
	}
	return false, nil
}

// command runs a statement of the service that is run often.
func (x *connection) command(sql string) error {
	x.own = true
	defer func() { x.own = false }()
	k, err := x.compile(sql)
	if err != nil {
		return err
	}
	return k.st.Exec()
}

// rollback ends a transaction that is still open, even if its time is over.
func (x *connection) rollback() error {
	if x.c.GetAutocommit() {
		return nil // SQLite has done so itself
	}
	old := x.c.SetInterrupt(context.Background())
	defer x.c.SetInterrupt(old)
	return x.command("ROLLBACK")
}

// compile returns the statement of a text, from the cache if it is there.
func (x *connection) compile(sql string) (*kept, error) {
	x.now++
	x.denied, x.wrote = "", false
	if k := x.mine[sql]; x.own && k != nil {
		return k, nil
	}
	if k := x.kept[sql]; !x.own && k != nil && !k.busy {
		k.used = x.now
		return k, nil
	}
	st, tail, err := x.c.Prepare(sql)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, service.Errorf(service.BadRequest, "there is no statement")
	}
	if restOf(tail) {
		_ = st.Close()
		return nil, service.Errorf(service.BadRequest, "more than one statement: the op tx takes several")
	}
	k := &kept{st: st, used: x.now}
	if x.own {
		x.mine[sql] = k
		return k, nil
	}
	if len(sql) <= keptLength && x.kept[sql] == nil {
		if len(x.kept) >= keptStatements {
			x.forgetOldest()
		}
		x.kept[sql] = k
	}
	return k, nil
}

func (x *connection) forgetOldest() {
	oldest, at := "", ^uint64(0)
	for sql, k := range x.kept {
		if k.used < at && !k.busy {
			oldest, at = sql, k.used
		}
	}
	x.forget(oldest)
}

func (x *connection) forget(sql string) {
	if k := x.kept[sql]; k != nil {
		_ = k.st.Close()
		delete(x.kept, sql)
	}
}

// Run implements [Tx].
func (x *connection) Run(ctx context.Context, sql string, params []Param, columns func([]string) error, row func([]Value) error) (out Outcome, err error) {
	k, err := x.compile(sql)
	if err != nil {
		return Outcome{}, x.db.translateFor(ctx, x, err)
	}
	k.busy = true
	defer func() {
		k.busy = false
		_, isKept := x.kept[sql]
		if isKept = isKept && x.kept[sql] == k; !isKept {
			_ = k.st.Close()
			return
		}
		reset, clear := k.st.Reset(), k.st.ClearBindings()
		if err != nil || reset != nil || clear != nil {
			x.forget(sql) // it may have caused the error
		}
	}()
	if x.access == Read && !k.st.ReadOnly() {
		return Outcome{}, service.Errorf(service.ReadOnly, "the statement writes: use the op exec or tx")
	}
	if err := bind(k.st, params); err != nil {
		return Outcome{}, x.db.translateFor(ctx, x, err)
	}
	before := x.c.TotalChanges()
	x.c.SetLastInsertRowID(0)
	if err := x.rows(ctx, k, columns, row); err != nil {
		return Outcome{}, err
	}
	if x.c.TotalChanges() != before {
		out = Outcome{x.c.Changes(), x.c.LastInsertRowID()}
	}
	return out, nil
}

// rows steps through a statement.
func (x *connection) rows(ctx context.Context, k *kept, columns func([]string) error, row func([]Value) error) error {
	first := true
	var values []Value
	for {
		more := k.st.Step()
		if !more && k.st.Err() != nil {
			return x.db.translateFor(ctx, x, k.st.Err())
		}
		if first { // the first step may compile it again
			first = false
			x.describe(k)
			if err := columns(names(k.cols)); err != nil {
				return err
			}
			values = make([]Value, len(k.cols))
		}
		if !more {
			return nil
		}
		for i := range values {
			values[i] = read(k.st, i, k.cols[i].as)
		}
		if err := k.st.Err(); err != nil {
			return x.db.translateFor(ctx, x, err)
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// describe determines the columns of a statement.
func (x *connection) describe(k *kept) {
	n := k.st.ColumnCount()
	k.cols = k.cols[:0]
	for i := range n {
		c := column{name: strings.ToValidUTF8(k.st.ColumnName(i), "\uFFFD")}
		switch strings.ToUpper(k.st.ColumnDeclType(i)) {
		case "BOOLEAN", "BOOL":
			c.as = Bool
		case "DATETIME", "TIMESTAMP":
			c.as = Time
		}
		k.cols = append(k.cols, c)
	}
}

func names(cols []column) []string {
	n := make([]string, len(cols))
	for i := range cols {
		n[i] = cols[i].name
	}
	return n
}

// read is the value of a column of the current row.
func read(st *sqlite3.Stmt, i int, as Kind) Value {
	switch st.ColumnType(i) {
	case sqlite3.INTEGER:
		v := Value{Kind: Int, Int: st.ColumnInt64(i)}
		if as == Bool && (v.Int == 0 || v.Int == 1) {
			v.Kind = Bool
		}
		return v
	case sqlite3.FLOAT:
		return Value{Kind: Float, Float: st.ColumnFloat(i)}
	case sqlite3.TEXT:
		v := Value{Kind: Text, Text: st.ColumnText(i)}
		if as == Time {
			if t, ok := ParseTime(v.Text); ok {
				return Value{Kind: Time, Time: t}
			}
		}
		return v
	case sqlite3.BLOB:
		return Value{Kind: Blob, Blob: st.ColumnRawBlob(i)}
	}
	return Value{}
}

// bind binds a statement's parameters: all that it has, and no others.
func bind(st *sqlite3.Stmt, params []Param) error {
	n := st.BindCount()
	given := make([]bool, n+1)
	for i, p := range params {
		at := i + 1
		if p.Name != "" {
			at = 0
			for _, sign := range [...]string{":", "@", "$"} {
				if at = st.BindIndex(sign + p.Name); at != 0 {
					break
				}
			}
			if at == 0 {
				return service.Errorf(service.BadRequest, "the statement has no parameter %q", p.Name)
			}
		}
		if at > n {
			return service.Errorf(service.BadRequest, "%d parameters are given, the statement has %d", len(params), n)
		}
		if given[at] {
			return service.Errorf(service.BadRequest, "parameter %d is given twice", at)
		}
		given[at] = true
		if err := bindOne(st, at, &p.Value); err != nil {
			return err
		}
	}
	for at := 1; at <= n; at++ {
		if !given[at] {
			return service.Errorf(service.BadRequest, "parameter %d of %d is missing", at, n)
		}
	}
	return nil
}

func bindOne(st *sqlite3.Stmt, at int, v *Value) error {
	switch v.Kind {
	case Int, Bool:
		return st.BindInt64(at, v.Int)
	case Float:
		return st.BindFloat(at, v.Float)
	case Text:
		return st.BindText(at, v.Text)
	case Blob:
		return st.BindBlob(at, v.Blob)
	case Time:
		return st.BindText(at, v.Time.UTC().Format(TimeLayout))
	}
	return st.BindNull(at)
}
