//go:build !wasip1

package fake

import (
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/sql"
)

// SQL is the service sql. It knows no SQL: the test says what each statement does. What a statement does in a real database is
// seen by scenarios, which run the real service.
type SQL struct {
	Service
	names []string
	rules []rule
	begun func(q []Query) (undo func())
}

type rule struct {
	sql string
	do  func(q Query) Rows
}

// Query is a statement that an actor runs. Parameters are nil, int64, float64, string, []byte, bool or time.Time.
type Query struct {
	DB     string
	SQL    string
	Params []any
	Names  []string // of Params, if they are named
	Write  bool     // of Exec, or of a Tx that writes
}

// Param is the value of a named parameter, nil if there is none.
func (q *Query) Param(name string) any {
	for i, n := range q.Names {
		if n == name {
			return q.Params[i]
		}
	}
	return nil
}

// Rows is what a statement has done and returned. Values are as in [Query]; an int counts as an int64.
type Rows struct {
	Columns  []string
	Rows     [][]any
	Affected int64
	LastID   int64
	Err      *service.Error // instead of the rest
}

// Refuse is Rows with an error, such as service.Exists for a key that is there already.
func Refuse(code service.Code, text string) Rows { return Rows{Err: wrong(code, text)} }

// UsualRows is how many rows an answer has at most if the statement says nothing, as in the service.
const UsualRows = 1000

// NewSQL makes databases of these names; without any it is one, main.
func NewSQL(w *actortest.World, databases ...string) *SQL {
	s := &SQL{names: databases}
	if len(databases) == 0 {
		s.names = []string{"main"}
	}
	s.begin(w, "sql", s.do)
	return s
}

// On says what a statement does, which is recognised whatever its white space and the case of its letters. The last one for a
// statement holds; "" is for those that no other is for. A statement that none is for is answered with bad_request.
func (s *SQL) On(statement string, do func(q Query) Rows) {
	s.rules = append(s.rules, rule{plain(statement), do})
}

// Transactions has a function called before each request that writes, with its statements. What it returns is called if the
// request fails, to undo what those before have done.
func (s *SQL) Transactions(begin func(q []Query) (undo func())) { s.begun = begin }

func plain(statement string) string {
	return strings.ToLower(strings.Join(strings.Fields(statement), " "))
}

// statement is one of a request.
type statement struct {
	query    Query
	rows     int64
	rest     sql.Rest
	affected *[2]int64
	returned *[2]int64
}

// transaction is a request.
type transaction struct {
	db, access string
	list       []statement
}

func (s *SQL) do(c *actortest.Call) (actor.Encoder, *service.Error) {
	var t transaction
	var bad *service.Error
	switch c.Op {
	case "query", "exec":
		t.access = map[string]string{"query": "read", "exec": "write"}[c.Op]
		t.list = []statement{{}}
		bad = fields(c.Reader(), func(key string, r *abi.Reader) bool {
			if key == "db" {
				t.db = r.Text()
				return true
			}
			return key != "expect" && t.list[0].field(key, r)
		})
	case "tx":
		t.access = "write"
		bad = fields(c.Reader(), t.field)
	default:
		return nil, wrong(service.BadRequest, "there is no operation "+c.Op)
	}
	if bad != nil {
		return nil, bad
	}
	if t.access != "read" && t.access != "write" {
		return nil, wrong(service.BadRequest, "access is read or write")
	}
	if err := s.named(&t); err != nil {
		return nil, err
	}
	results, err := s.run(c, &t)
	if err != nil {
		return nil, err
	}
	if c.Op != "tx" {
		return results[0], nil
	}
	return actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("results")
		w.Array(len(results))
		for _, x := range results {
			x.MarshalCBOR(w)
		}
	}), nil
}

// named finds the database of a request.
func (s *SQL) named(t *transaction) *service.Error {
	if t.db == "" && len(s.names) == 1 {
		t.db = s.names[0]
	}
	for _, name := range s.names {
		if name == t.db {
			return nil
		}
	}
	if t.db == "" {
		return wrong(service.BadRequest, "db must be one of "+strings.Join(s.names, ", "))
	}
	return wrong(service.Denied, "the database "+t.db+" is not granted, but "+strings.Join(s.names, ", "))
}

func (t *transaction) field(key string, r *abi.Reader) bool {
	switch key {
	case "db":
		t.db = r.Text()
	case "access":
		t.access = r.Text()
	case "statements":
		for range r.Array() {
			var x statement
			for range r.Map() {
				if k := r.Text(); !r.OK() || !x.field(k, r) {
					r.Fail(&abi.Error{Reason: "unknown key " + k})
					break
				}
			}
			if !r.OK() {
				break
			}
			t.list = append(t.list, x)
		}
	default:
		return false
	}
	return true
}

func (x *statement) field(key string, r *abi.Reader) bool {
	switch key {
	case "sql":
		x.query.SQL = r.Text()
	case "rows":
		x.rows = r.Int()
	case "rest":
		x.rest = sql.Rest(r.Text())
	case "params":
		if r.Peek() == abi.TypeMap {
			for range r.Map() {
				if !r.OK() {
					break
				}
				x.query.Names = append(x.query.Names, r.Text())
				x.query.Params = append(x.query.Params, param(r))
			}
			break
		}
		for range r.Array() {
			if !r.OK() {
				break
			}
			x.query.Params = append(x.query.Params, param(r))
		}
	case "expect":
		for range r.Map() {
			if !r.OK() {
				break
			}
			k := r.Text()
			if r.Array() != 2 {
				r.Fail(abi.ErrArity)
			}
			pair := &[2]int64{r.Int(), r.Int()}
			switch k {
			case "affected":
				x.affected = pair
			case "rows":
				x.returned = pair
			default:
				r.Fail(&abi.Error{Reason: "unknown key " + k})
			}
		}
	default:
		return false
	}
	return true
}

func param(r *abi.Reader) any {
	switch r.Peek() {
	case abi.TypeUint, abi.TypeNint:
		return r.Int()
	case abi.TypeFloat:
		return r.Float()
	case abi.TypeText:
		return r.Text()
	case abi.TypeBytes:
		return append([]byte{}, r.ByteString()...)
	case abi.TypeBool:
		return r.Bool()
	case abi.TypeMap:
		if r.Map() != 1 || r.Text() != "time" {
			r.Fail(abi.ErrType)
		}
		return time.Unix(0, r.Int()).UTC()
	}
	r.Null()
	return nil
}

// run runs the statements, in their order, or none.
func (s *SQL) run(c *actortest.Call, t *transaction) (results []actor.Encoder, failed *service.Error) {
	if len(t.list) == 0 {
		return nil, wrong(service.BadRequest, "statements is missing, or empty")
	}
	queries := make([]Query, len(t.list))
	for i := range t.list {
		q := &t.list[i].query
		if q.SQL == "" {
			return nil, wrong(service.BadRequest, "sql is missing")
		}
		q.DB, q.Write = t.db, t.access == "write"
		queries[i] = *q
	}
	if s.begun != nil && t.access == "write" {
		if undo := s.begun(queries); undo != nil {
			defer func() {
				if failed != nil {
					undo()
				}
			}()
		}
	}
	for i := range t.list {
		v, err := s.one(c, &t.list[i])
		if err != nil {
			if len(t.list) > 1 {
				err = wrong(err.Code, "statements["+strconv.Itoa(i)+"]: "+err.Text)
			}
			return nil, err
		}
		results = append(results, v)
	}
	return results, nil
}

func (s *SQL) one(c *actortest.Call, x *statement) (actor.Encoder, *service.Error) {
	var rows Rows
	found := false
	for _, want := range []string{plain(x.query.SQL), ""} {
		for i := len(s.rules) - 1; i >= 0 && !found; i-- {
			if s.rules[i].sql == want {
				rows, found = s.rules[i].do(x.query), true
			}
		}
	}
	switch {
	case !found:
		return nil, wrong(service.BadRequest, "the fake has not been told what this does: "+x.query.SQL)
	case rows.Err != nil:
		return nil, rows.Err
	case x.affected != nil && (rows.Affected < x.affected[0] || rows.Affected > x.affected[1]):
		return nil, wrong(service.Conflict, strconv.FormatInt(rows.Affected, 10)+" rows were affected, which is not what was expected")
	case x.returned != nil && (int64(len(rows.Rows)) < x.returned[0] || int64(len(rows.Rows)) > x.returned[1]):
		return nil, wrong(service.Conflict, strconv.Itoa(len(rows.Rows))+" rows were returned, which is not what was expected")
	}
	most := UsualRows
	if x.rows > 0 {
		most = int(min(x.rows, UsualRows))
	}
	out := &answered{Rows: rows, end: sql.EndAll}
	if len(rows.Rows) <= most {
		return out, nil
	}
	switch x.rest {
	case sql.Cut:
		out.end = sql.EndCut
	case sql.Page:
		if c.Op != "query" {
			return nil, wrong(service.BadRequest, "rest: page is for query")
		}
		p := &pages{rest: rows.Rows[most:], most: most}
		p.fake = s.Open(p.part)
		out.end, out.cursor = sql.EndPage, p.fake.Ref()
	default:
		return nil, wrong(service.TooLarge, strconv.Itoa(len(rows.Rows))+" rows, at most "+strconv.Itoa(most))
	}
	out.Rows.Rows = rows.Rows[:most]
	return out, nil
}

// answered is the result of a statement.
type answered struct {
	Rows
	end    sql.End
	cursor actor.Ref
}

// MarshalCBOR implements actor.Encoder.
func (x *answered) MarshalCBOR(w *abi.Writer) {
	n := 2
	for _, has := range [...]bool{x.Affected != 0, x.LastID != 0, x.Columns != nil, x.cursor != 0} {
		if has {
			n++
		}
	}
	w.Map(n)
	if x.Affected != 0 {
		w.Text("affected")
		w.Int(x.Affected)
	}
	if x.LastID != 0 {
		w.Text("last_id")
		w.Int(x.LastID)
	}
	if x.Columns != nil {
		w.Text("columns")
		w.Array(len(x.Columns))
		for _, c := range x.Columns {
			w.Text(c)
		}
	}
	if x.cursor != 0 {
		w.Text("cursor")
		w.Ref(x.cursor)
	}
	w.Text("end")
	w.Text(string(x.end))
	w.Text("rows")
	w.Array(len(x.Rows.Rows))
	for _, row := range x.Rows.Rows {
		w.Array(len(row))
		for _, v := range row {
			value(v).MarshalCBOR(w)
		}
	}
}

// value is a value of a row, as an actor reads it.
func value(v any) sql.Value {
	switch v := v.(type) {
	case nil:
		return sql.Null()
	case int:
		return sql.Int(int64(v))
	case int64:
		return sql.Int(v)
	case float64:
		return sql.Float(v)
	case string:
		return sql.Text(v)
	case []byte:
		return sql.Blob(v)
	case bool:
		return sql.Bool(v)
	case time.Time:
		return sql.Time(v)
	}
	panic("fake: a row of sql has a value that is none of nil, int, int64, float64, string, []byte, bool, time.Time")
}

// pages are what is left of a result.
type pages struct {
	fake *actortest.Fake
	rest [][]any
	most int
}

func (p *pages) part(c *actortest.Call) {
	switch c.Op {
	case "next":
		most := p.most
		if raw := c.Field("rows"); raw != nil {
			most = int(min(max(abi.NewReader(raw).Int(), 1), UsualRows))
		}
		out := &answered{Rows: Rows{Rows: p.rest}, end: sql.EndAll}
		if len(p.rest) > most {
			out.Rows.Rows, out.end, p.rest = p.rest[:most], sql.EndPage, p.rest[most:]
			c.Answer(out)
			return
		}
		c.Answer(out)
		p.fake.Close()
	case "close":
		c.Answer(nil)
		p.fake.Close()
	default:
		c.Fail(service.BadRequest, "a result has no operation "+c.Op)
	}
}
