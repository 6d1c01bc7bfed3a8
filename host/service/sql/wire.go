package sql

import (
	"math"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/service"
)

// Rest says what happens to rows that do not fit into an answer.
type Rest string

// The values of rest.
const (
	Fail Rest = "fail" // the request fails with too_large
	Cut  Rest = "cut"  // they are left out, and the answer says so
	Page Rest = "page" // they can be asked for, page by page
)

// statement is a statement of a request.
type statement struct {
	sql      string
	params   []Param
	rows     int // at most in the answer; 0: what the grant says
	rest     Rest
	affected *span // what must hold, or all is rolled back; nil: anything
	returned *span
}

// span is from and to, inclusive.
type span struct{ from, to int64 }

func (s *span) has(n int64) bool { return s == nil || s.from <= n && n <= s.to }

// request is a request of the ops query, exec and tx.
type request struct {
	db         string
	write      bool
	statements []statement
}

var (
	errUnknownKey = &abi.Error{Reason: "unknown key"}
	errTwice      = &abi.Error{Reason: "a key twice"}
	errRest       = &abi.Error{Reason: "rest is fail, cut or page"}
	errAccess     = &abi.Error{Reason: "access is read or write"}
	errSpan       = &abi.Error{Reason: "expect has pairs [from, to]"}
	errRows       = &abi.Error{Reason: "rows is 1 or more"}
	errNoSQL      = &abi.Error{Reason: "sql is missing"}
	errNoList     = &abi.Error{Reason: "statements is missing, or empty"}
	errManyParams = &abi.Error{Reason: "too many parameters"}
	errManyStmts  = &abi.Error{Reason: "too many statements"}
)

// fields reads a map whose keys are among names. read is called with the index of each.
func fields(r *abi.Reader, names []string, read func(i int)) {
	seen := uint(0)
	for range r.Map() {
		key, at := string(r.TextBytes()), -1
		for i, n := range names {
			if n == key {
				at = i
			}
		}
		switch {
		case !r.OK():
			return
		case at < 0:
			r.Fail(errUnknownKey)
			return
		case seen&(1<<at) != 0:
			r.Fail(errTwice)
			return
		}
		seen |= 1 << at
		read(at)
		if !r.OK() {
			return
		}
	}
}

var (
	singleKeys = []string{"db", "sql", "params", "rows", "rest"}
	txKeys     = []string{"db", "access", "statements"}
	partKeys   = []string{"sql", "params", "rows", "rest", "expect"}
	expectKeys = []string{"affected", "rows"}
	nextKeys   = []string{"rows"}
)

// bounds are the bounds that a decoder checks.
type bounds struct{ params, statements int }

// decodeSingle reads the arguments of query and exec.
func decodeSingle(args []byte, b bounds) (q request, err error) {
	r := abi.NewReader(args)
	st := statement{rest: Fail}
	fields(r, singleKeys, func(i int) {
		if i == 0 {
			q.db = r.Text()
			return
		}
		readPart(r, partKeys[i-1], &st, b)
	})
	if st.sql == "" {
		r.Fail(errNoSQL)
	}
	q.statements = []statement{st}
	return q, r.Done()
}

// decodeTx reads the arguments of tx.
func decodeTx(args []byte, b bounds) (q request, err error) {
	r := abi.NewReader(args)
	q.write = true
	fields(r, txKeys, func(i int) {
		switch txKeys[i] {
		case "db":
			q.db = r.Text()
		case "access":
			switch string(r.TextBytes()) {
			case "write":
			case "read":
				q.write = false
			default:
				r.Fail(errAccess)
			}
		case "statements":
			n := r.Array()
			if n > b.statements {
				r.Fail(errManyStmts)
				return
			}
			for range n {
				if !r.OK() {
					return
				}
				st := statement{rest: Fail}
				fields(r, partKeys, func(i int) { readPart(r, partKeys[i], &st, b) })
				if st.sql == "" {
					r.Fail(errNoSQL)
				}
				if st.rest == Page {
					r.Fail(&abi.Error{Reason: "rest is fail or cut in a transaction"})
				}
				q.statements = append(q.statements, st)
			}
		}
	})
	if len(q.statements) == 0 {
		r.Fail(errNoList)
	}
	return q, r.Done()
}

// readPart reads the value of a key of a statement.
func readPart(r *abi.Reader, key string, st *statement, b bounds) {
	switch key {
	case "sql":
		st.sql = r.Text()
	case "params":
		st.params = readParams(r, b.params)
	case "rows":
		n := r.Uint()
		if n == 0 {
			r.Fail(errRows)
		}
		st.rows = int(min(n, math.MaxInt32))
	case "rest":
		switch st.rest = Rest(r.Text()); st.rest {
		case Fail, Cut, Page:
		default:
			r.Fail(errRest)
		}
	case "expect":
		fields(r, expectKeys, func(i int) {
			if i == 0 {
				st.affected = readSpan(r)
			} else {
				st.returned = readSpan(r)
			}
		})
	}
}

func readSpan(r *abi.Reader) *span {
	if r.Array() != 2 {
		r.Fail(errSpan)
		return nil
	}
	s := &span{r.Int(), r.Int()}
	if s.from < 0 || s.to < s.from {
		r.Fail(errSpan)
	}
	return s
}

// readParams reads parameters by place, as an array, or by name, as a map.
func readParams(r *abi.Reader, most int) []Param {
	named := r.Peek() == abi.TypeMap
	if r.Null() {
		return nil
	}
	n := 0
	if named {
		n = r.Map()
	} else {
		n = r.Array()
	}
	if n > most {
		r.Fail(errManyParams)
		return nil
	}
	var out []Param
	for range n {
		var p Param
		if named {
			if p.Name = r.Text(); p.Name == "" {
				r.Fail(errUnknownKey)
			}
		}
		p.Value = readValue(r)
		if !r.OK() {
			return nil
		}
		out = append(out, p)
	}
	return out
}

// decodeNext reads the arguments of a cursor's next: how many rows, 0 if not stated.
func decodeNext(r *abi.Reader) (rows int, err error) {
	if r.Null() {
		return 0, r.Done()
	}
	fields(r, nextKeys, func(int) {
		n := r.Uint()
		if n == 0 {
			r.Fail(errRows)
		}
		rows = int(min(n, math.MaxInt32))
	})
	return rows, r.Done()
}

// badRequest is the error for arguments that cannot be read.
func badRequest(op string, err error) error {
	return service.Errorf(service.BadRequest, "%s: %s", op, err)
}

// result is what a statement has returned, encoded as it comes.
type result struct {
	columns []string
	rows    []byte // encoded, one after the other
	count   int
	cut     bool
	out     Outcome

	w abi.Writer
}

// add appends a row; false if it has no room in so many bytes.
func (s *result) add(values []Value, most int) bool {
	s.w.Reset(s.rows)
	s.w.Array(len(values))
	for i := range values {
		appendValue(&s.w, &values[i])
		if s.w.Len() > most {
			return false
		}
	}
	s.rows = s.w.Bytes()
	s.count++
	return true
}

// clearRows makes room for the next page.
func (s *result) clearRows() { s.rows, s.count = s.rows[:0], 0 }

// encode appends the result as a map: {columns, rows, affected, last_id, end[, cursor]}. Empty
// keys are left out, except end if there are columns.
func (s *result) encode(w *abi.Writer, end string, cursor uint64) {
	has := [...]bool{s.out.Affected != 0, len(s.columns) > 0, cursor != 0, end != "", s.out.LastID != 0, len(s.columns) > 0}
	n := 0
	for _, h := range has {
		if h {
			n++
		}
	}
	w.Map(n)
	if has[0] {
		w.Text("affected")
		w.Int(s.out.Affected)
	}
	if has[1] {
		w.Text("columns")
		w.Array(len(s.columns))
		for _, c := range s.columns {
			w.Text(c)
		}
	}
	if has[2] {
		w.Text("cursor")
		w.Uint(cursor)
	}
	if has[3] {
		w.Text("end")
		w.Text(end)
	}
	if has[4] {
		w.Text("last_id")
		w.Int(s.out.LastID)
	}
	if has[5] {
		w.Text("rows")
		s.encodeRows(w)
	}
}

func (s *result) encodeRows(w *abi.Writer) {
	w.Array(s.count)
	w.Encoded(string(s.rows))
}

// What follows the rows of an answer.
const (
	endAll  = "all"  // nothing
	endCut  = "cut"  // rows that were left out
	endPage = "page" // the next page
)
