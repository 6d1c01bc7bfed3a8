package sql

import (
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// Transactions of durable actors are carried out once, by drivers whose transactions are keepers: SQLite's. The key of each, and what it
// has answered, are a row of a table of the database, written in the same transaction. The table is made with the first of them. No
// statement of a guest can read it or change it.

// KeptTable is the table that a database has for requests of durable actors.
const KeptTable = "wasmactors_effects"

// keptSchema is how the table is made, and how SQLite has it in its schema.
const keptSchema = "CREATE TABLE " + KeptTable + "(life INTEGER NOT NULL, number INTEGER NOT NULL, kept BLOB NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(life, number)) WITHOUT ROWID"

// isKeptTable reports whether it is the name of that table, as SQLite compares names.
func isKeptTable(name string) bool { return strings.EqualFold(name, KeptTable) }

// keeper is a [Tx] that keeps what requests have led to.
type keeper interface {
	// answered is the answer of a request that was carried out before; nil: it was not.
	answered(r *once.Request) (answer []byte, err error)
	// note notes the answer of a request, as a part of the transaction.
	note(r *once.Request, now time.Time, answer []byte) error
}

// onlyOnce calls f within a transaction, or returns what f has answered for the same request before.
func onlyOnce(tx Tx, r *once.Request, now func() time.Time, f func() ([]byte, error)) ([]byte, error) {
	k, ok := tx.(keeper)
	if r == nil || !ok {
		return f()
	}
	if answer, err := k.answered(r); answer != nil || err != nil {
		return answer, err
	}
	answer, err := f()
	if err == nil {
		err = k.note(r, now(), answer)
	}
	return answer, err
}

// errForeign says that somebody else has made a table of that name.
var errForeign = service.Errorf(service.Unavailable, "the database has a table %s that is another one: rename it", KeptTable)

// answered implements keeper.
func (x *connection) answered(r *once.Request) (answer []byte, err error) {
	schema := ""
	if err = x.each("SELECT sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE", func(st *sqlite3.Stmt) error {
		schema = st.ColumnText(0)
		return nil
	}, Value{Kind: Text, Text: KeptTable}); err != nil {
		return nil, err
	}
	switch schema {
	case keptSchema:
	case "":
		return nil, x.each(keptSchema, nil)
	default:
		return nil, errForeign
	}
	err = x.each("SELECT kept FROM "+KeptTable+" WHERE life = ? AND number = ?", func(st *sqlite3.Stmt) error {
		k, err := once.Decode(st.ColumnRawBlob(0))
		if k.Number = r.Effect.Number; err == nil && k.Is(r) {
			answer = append([]byte{}, k.Answer...)
		}
		return err
	}, life(r.Life), number(r.Effect.Number))
	return answer, err
}

// note implements keeper. What is settled, and what is too old, goes.
func (x *connection) note(r *once.Request, now time.Time, answer []byte) error {
	at := now.UnixNano()
	if err := x.each("DELETE FROM "+KeptTable+" WHERE life = ? AND number < ?", nil, life(r.Life), number(r.Effect.Settled)); err != nil {
		return err
	}
	if swept := &x.db.swept; now.Sub(*swept).Abs() > sweepEvery { // there is one connection that writes
		if err := x.each("DELETE FROM "+KeptTable+" WHERE at < ?", nil, Value{Kind: Int, Int: at - int64(once.Keep)}); err != nil {
			return err
		}
		*swept = now
	}
	open := int64(0)
	if err := x.each("SELECT count(*) FROM "+KeptTable+" WHERE life = ? AND number <> ?", func(st *sqlite3.Stmt) error {
		open = st.ColumnInt64(0)
		return nil
	}, life(r.Life), number(r.Effect.Number)); err != nil {
		return err
	}
	if open >= once.MostOpen {
		return once.TooMany()
	}
	k := once.Kept{Key: r.Effect.Key, At: at, Answer: answer}
	return x.each("INSERT OR REPLACE INTO "+KeptTable+"(life, number, kept, at) VALUES(?, ?, ?, ?)", nil,
		life(r.Life), number(r.Effect.Number), Value{Kind: Blob, Blob: k.Append(nil)}, Value{Kind: Int, Int: at})
}

// sweepEvery is how often a database is searched for keys that are too old.
const sweepEvery = time.Hour

func life(of abi.Ref) Value { return Value{Kind: Int, Int: int64(of)} }
func number(n uint64) Value { return Value{Kind: Int, Int: int64(n)} }

// each runs a statement of the service's own and calls row for each row.
func (x *connection) each(sql string, row func(*sqlite3.Stmt) error, values ...Value) (err error) {
	x.own = true
	defer func() { x.own = false }()
	k, err := x.compile(sql)
	if err != nil {
		return x.db.translate(x.ctx, err)
	}
	defer func() {
		_ = k.st.Reset() // it says once more what err says
		_ = k.st.ClearBindings()
	}()
	for i := range values {
		if err := bindOne(k.st, i+1, &values[i]); err != nil {
			return x.db.translate(x.ctx, err)
		}
	}
	for k.st.Step() {
		if row != nil {
			if err := row(k.st); err != nil {
				return err
			}
		}
	}
	if err := k.st.Err(); err != nil {
		return x.db.translate(x.ctx, err)
	}
	return nil
}

// requestOf is a request of an actor that has a key; nil: it has none, or changes nothing.
func requestOf(r *service.Request[Grant], q *request) *once.Request {
	if !q.write {
		return nil
	}
	return once.Of(r.Sender, r.Effect)
}

var _ keeper = (*connection)(nil)
