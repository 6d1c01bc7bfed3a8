// Package sql queries a database of the host, which the actor was granted under
// capabilities.sql in the manifest.
//
//	sql.Exec(ctx, "main", sql.Do("insert into visits(who) values(?)", sql.Text(who)), time.Second,
//		func(ctx *actor.Context, r *sql.Result, err error) error { ... r.LastID ... })
//
//	sql.Query(ctx, "main", sql.Do("select who, n from visits"), time.Second,
//		func(ctx *actor.Context, r *sql.Result, err error) error {
//			if err != nil {
//				return err
//			}
//			return r.Each(func(row *sql.Row) {
//				who, n := row.Text(), row.Int()
//				...
//			})
//		})
//
// Each request is a transaction of its own; [Tx] makes one of several statements. The name of
// the database may be "" if the grant has only one. Errors are *service.Error: ErrExists for a key that
// is there already, ErrConflict for other constraints and for an [Expect] that does not hold,
// ErrReadOnly, ErrTooLarge for more rows than fit (see [Rest]), ErrTimeout, ...
package sql

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Statement is one statement with its parameters.
type Statement struct {
	SQL    string
	Params []Value  // by place
	Names  []string // of Params, if they are named: without the prefix character
	Rows   int      // of the answer at most; 0: what the grant allows
	Rest   Rest     // what happens to further rows
	Expect *Expect  // in a transaction: what must hold
}

// Do is a statement with parameters by place.
func Do(sql string, params ...Value) Statement { return Statement{SQL: sql, Params: params} }

// Rest says what happens to rows that do not fit into an answer.
type Rest string

// The ways to deal with more rows.
const (
	Fail Rest = "fail" // ErrTooLarge; the default
	Cut  Rest = "cut"  // they are left out; Result.End says so
	Page Rest = "page" // of Query: Next gets them
)

// Expect is what a statement of a transaction must do, or nothing is done: rows affected and rows
// returned, each from and to, inclusive. Nil allows anything.
type Expect struct {
	Affected *[2]int64
	Returned *[2]int64
}

// Affects says that a statement must change exactly n rows.
func (s Statement) Affects(n int64) Statement {
	s.Expect = &Expect{Affected: &[2]int64{n, n}}
	return s
}

// Then gets a result, or an error. The result is valid until it returns.
type Then = func(ctx *actor.Context, r *Result, err error) error

// Query runs a statement that reads.
func Query(ctx *actor.Context, db string, s Statement, timeout time.Duration, then Then) {
	one(ctx, "query", db, s, timeout, then)
}

// Exec runs a statement that may write, and that is durable when then is called without an error.
// After ErrTimeout it may have been done.
func Exec(ctx *actor.Context, db string, s Statement, timeout time.Duration, then Then) {
	one(ctx, "exec", db, s, timeout, then)
}

func one(ctx *actor.Context, op, db string, s Statement, timeout time.Duration, then Then) {
	service.Ask(ctx, "sql", op, &single{db, s}, timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		r, err := decode(m.Reader())
		return then(ctx, r, err)
	})
}

// Access says what a transaction does.
type Access string

// The ways of access.
const (
	Read  Access = "read"  // all statements see the database as it was at one time
	Write Access = "write" // one at a time
)

// Tx runs all statements, in their order, or none: an error of one, or an Expect that does not hold,
// undoes the others. results has one of each, valid until then returns.
func Tx(ctx *actor.Context, db string, access Access, statements []Statement, timeout time.Duration, then func(ctx *actor.Context, results []Result, err error) error) {
	service.Ask(ctx, "sql", "tx", &several{db, access, statements}, timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		results, err := decodeAll(m.Reader())
		return then(ctx, results, err)
	})
}

// Next gets the next page of a result with End EndPage. Only the first page has the columns. A page that is not asked for in
// time is lost, and so are those after it.
func Next(ctx *actor.Context, cursor actor.Ref, rows int, timeout time.Duration, then Then) {
	service.AskRef(ctx, cursor, "next", next(rows), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		r, err := decode(m.Reader())
		if r != nil && r.End == EndPage {
			r.Cursor = cursor
		}
		return then(ctx, r, err)
	})
}

// Close says that further pages are not wanted.
func Close(ctx *actor.Context, cursor actor.Ref) { service.TellRef(ctx, cursor, "close", nil) }

type next int

// MarshalCBOR implements actor.Encoder.
func (n next) MarshalCBOR(w *abi.Writer) {
	if n <= 0 {
		w.Null()
		return
	}
	w.Map(1)
	w.Text("rows")
	w.Int(int64(n))
}

type single struct {
	db string
	s  Statement
}

// MarshalCBOR implements actor.Encoder.
func (q *single) MarshalCBOR(w *abi.Writer) {
	n := q.s.keys()
	if q.db != "" {
		n++
	}
	w.Map(n)
	if q.db != "" {
		w.Text("db")
		w.Text(q.db)
	}
	q.s.marshal(w)
}

type several struct {
	db     string
	access Access
	all    []Statement
}

// MarshalCBOR implements actor.Encoder.
func (q *several) MarshalCBOR(w *abi.Writer) {
	n := 2
	if q.db != "" {
		n++
	}
	w.Map(n)
	w.Text("access")
	w.Text(string(q.access))
	if q.db != "" {
		w.Text("db")
		w.Text(q.db)
	}
	w.Text("statements")
	w.Array(len(q.all))
	for i := range q.all {
		w.Map(q.all[i].keys())
		q.all[i].marshal(w)
	}
}

// keys is how many keys marshal writes.
func (s *Statement) keys() int {
	n := 1
	if s.Expect != nil {
		n++
	}
	if len(s.Params) > 0 {
		n++
	}
	if s.Rest != "" {
		n++
	}
	if s.Rows > 0 {
		n++
	}
	return n
}

func (s *Statement) marshal(w *abi.Writer) {
	if s.Expect != nil {
		w.Text("expect")
		s.Expect.marshal(w)
	}
	if len(s.Params) > 0 {
		w.Text("params")
		if len(s.Names) == len(s.Params) {
			w.Map(len(s.Params))
		} else {
			w.Array(len(s.Params))
		}
		for i, v := range s.Params {
			if len(s.Names) == len(s.Params) {
				w.Text(s.Names[i])
			}
			v.MarshalCBOR(w)
		}
	}
	if s.Rest != "" {
		w.Text("rest")
		w.Text(string(s.Rest))
	}
	if s.Rows > 0 {
		w.Text("rows")
		w.Int(int64(s.Rows))
	}
	w.Text("sql")
	w.Text(s.SQL)
}

func (e *Expect) marshal(w *abi.Writer) {
	n := 0
	for _, p := range [...]*[2]int64{e.Affected, e.Returned} {
		if p != nil {
			n++
		}
	}
	w.Map(n)
	if e.Affected != nil {
		w.Text("affected")
		pair(w, e.Affected)
	}
	if e.Returned != nil {
		w.Text("rows")
		pair(w, e.Returned)
	}
}

func pair(w *abi.Writer, p *[2]int64) {
	w.Array(2)
	w.Int(p[0])
	w.Int(p[1])
}
