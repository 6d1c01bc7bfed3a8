package sql

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Result is what a statement has done and returned.
type Result struct {
	Affected int64 // rows inserted, updated or deleted
	LastID   int64 // of the last row inserted, 0 if none was
	Columns  []string
	Len      int       // rows
	End      End       // what is behind them
	Cursor   actor.Ref // with EndPage: for Next
	rows     []byte
}

// End says what is behind the rows of a result.
type End string

// The ends of results.
const (
	EndAll  End = "all"  // nothing
	EndCut  End = "cut"  // rows that were left out, see Cut
	EndPage End = "page" // the next page, see Next
)

var errResult = &service.Error{Code: service.Internal, Text: "the answer is not a result"}

// decode reads a result. Keys that it does not know are skipped.
func decode(r *abi.Reader) (*Result, error) {
	var out Result
	if out.read(r); r.Done() != nil {
		return nil, errResult
	}
	return &out, nil
}

func decodeAll(r *abi.Reader) (out []Result, err error) {
	for range r.Map() {
		if string(r.TextBytes()) != "results" {
			r.Skip()
			continue
		}
		for range r.Array() {
			if !r.OK() {
				break
			}
			out = append(out, Result{})
			out[len(out)-1].read(r)
		}
	}
	if r.Done() != nil {
		return nil, errResult
	}
	return out, nil
}

func (s *Result) read(r *abi.Reader) {
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "affected":
			s.Affected = r.Int()
		case "last_id":
			s.LastID = r.Int()
		case "columns":
			for range r.Array() {
				s.Columns = append(s.Columns, r.Text())
				if !r.OK() {
					return
				}
			}
		case "cursor":
			s.Cursor = r.Ref()
		case "end":
			s.End = End(r.Text())
		case "rows":
			s.rows = r.Raw()
			s.Len = abi.NewReader(s.rows).Array()
		default:
			r.Skip()
		}
	}
}

// Each calls f with every row. Its error is the first one that came up in reading a column.
func (s *Result) Each(f func(row *Row)) error {
	if s.rows == nil {
		return nil
	}
	r := abi.NewReader(s.rows)
	row := Row{r: r}
	for range r.Array() {
		row.left = r.Array()
		f(&row)
		for ; row.left > 0; row.left-- {
			r.Skip()
		}
		if err := r.Err(); err != nil {
			return &service.Error{Code: service.BadRequest, Text: "a column of the result is something else than what was read: " + err.Error()}
		}
	}
	return nil
}

// Row is a row. Its methods read one column after the other; texts that they return stay valid, the rest
// until the function that got the result returns. A column of another type is an error
// of [Result.Each], and everything reads as zero from there on. Nothing is converted, except that Float
// reads integers.
type Row struct {
	r    *abi.Reader
	left int
}

var errColumns = &abi.Error{Reason: "the row has no more columns"}

func (x *Row) next() *abi.Reader {
	if x.left == 0 {
		x.r.Fail(errColumns)
	} else {
		x.left--
	}
	return x.r
}

// Left is how many columns are left.
func (x *Row) Left() int { return x.left }

// Null steps over a null and reports true if one is next; else it does nothing.
func (x *Row) Null() bool {
	if x.left == 0 || x.r.Peek() != abi.TypeNull {
		return false
	}
	return x.next().Null()
}

// Int reads an integer.
func (x *Row) Int() int64 { return x.next().Int() }

// Float reads a float.
func (x *Row) Float() float64 { return x.next().Float() }

// Text reads a text.
func (x *Row) Text() string { return x.next().Text() }

// Blob reads bytes: of a blob, or of a text that is not UTF-8.
func (x *Row) Blob() []byte { return x.next().ByteString() }

// Bool reads a truth value: of a column that is declared BOOLEAN.
func (x *Row) Bool() bool { return x.next().Bool() }

// Time reads a time: of a column that is declared DATETIME or TIMESTAMP.
func (x *Row) Time() time.Time {
	r := x.next()
	if r.Map() != 1 || string(r.TextBytes()) != "time" {
		r.Fail(abi.ErrType)
		return time.Time{}
	}
	return time.Unix(0, r.Int()).UTC()
}

// Skip steps over a column.
func (x *Row) Skip() { x.next().Skip() }

// Value reads the next value, of any type.
func (x *Row) Value() Value {
	if x.left == 0 {
		x.next()
		return Value{}
	}
	switch x.r.Peek() {
	case abi.TypeUint, abi.TypeNint:
		return Int(x.Int())
	case abi.TypeFloat:
		return Float(x.Float())
	case abi.TypeText:
		return Text(x.Text())
	case abi.TypeBytes:
		return Blob(x.Blob())
	case abi.TypeBool:
		return Bool(x.Bool())
	case abi.TypeMap:
		return Time(x.Time())
	}
	x.next().Null()
	return Value{}
}
