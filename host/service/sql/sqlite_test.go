package sql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		crashChild()
	}
	goleak.VerifyTestMain(m)
}

func testSource(t testing.TB) Source {
	d := DatabaseSettings{File: filepath.Join(t.TempDir(), "test.db")}
	s := d.source("test", &service.Env{Log: discard})
	s.Warn = func(text string, args ...any) { t.Log(append([]any{text}, args...)...) }
	return s
}

func openTest(t testing.TB, change func(*Source)) *sqlite {
	s := testSource(t)
	if change != nil {
		change(&s)
	}
	db, err := SQLite.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db.(*sqlite)
}

// table is what a statement has returned.
type table struct {
	Outcome
	columns []string
	rows    [][]Value
}

func do(db Database, how Access, sql string, values ...Value) (table, error) {
	return doIn(context.Background(), db, how, sql, values...)
}

func doIn(ctx context.Context, db Database, how Access, sql string, values ...Value) (out table, err error) {
	var params []Param
	for _, v := range values {
		params = append(params, Param{Value: v})
	}
	err = db.Do(ctx, Scope{Access: how, Single: how == Read}, func(tx Tx) error {
		var err error
		out.Outcome, err = tx.Run(ctx, sql, params,
			func(c []string) error { out.columns = c; return nil },
			func(v []Value) error {
				if len(out.rows) >= 100_000 {
					return service.Errorf(service.TooLarge, "too many rows")
				}
				row := append([]Value{}, v...)
				for i := range row {
					row[i].Blob = append([]byte(nil), row[i].Blob...)
				}
				out.rows = append(out.rows, row)
				return nil
			})
		return err
	})
	return out, err
}

func must(t testing.TB, db Database, sql string, values ...Value) table {
	t.Helper()
	out, err := do(db, Write, sql, values...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func text(s string) Value   { return Value{Kind: Text, Text: s} }
func integer(i int64) Value { return Value{Kind: Int, Int: i} }

func TestValuesComeBackAsTheyWere(t *testing.T) {
	db := openTest(t, nil)
	must(t, db, "create table v(a, b boolean, c datetime)")
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	for _, v := range []Value{
		{}, integer(0), integer(1), integer(-1), integer(math.MaxInt64), integer(math.MinInt64), integer(1<<53 + 1),
		{Kind: Float, Float: 0.1}, {Kind: Float, Float: 1}, {Kind: Float, Float: math.Inf(1)}, {Kind: Float, Float: math.Inf(-1)},
		{Kind: Float, Float: math.MaxFloat64}, {Kind: Float, Float: math.SmallestNonzeroFloat64},
		text(""), text("a\x00b"), text("grüße 🌍"), text("2024-02-29T23:59:59.123456789Z"), text("1"), text("1.0"),
		{Kind: Blob, Blob: []byte{}}, {Kind: Blob, Blob: []byte{0, 255}},
	} {
		must(t, db, "delete from v")
		must(t, db, "insert into v(a) values(?)", v)
		got := must(t, db, "select a from v").rows[0][0]
		if got.Kind != v.Kind || got.Int != v.Int || got.Float != v.Float || got.Text != v.Text || string(got.Blob) != string(v.Blob) {
			t.Errorf("%+v came back as %+v", v, got)
		}
	}
	must(t, db, "delete from v")
	must(t, db, "insert into v(a,b,c) values(?,?,?)", Value{Kind: Bool, Int: 1}, Value{Kind: Bool, Int: 1}, Value{Kind: Time, Time: at})
	row := must(t, db, "select * from v").rows[0]
	if row[0].Kind != Int || row[0].Int != 1 {
		t.Errorf("a bool in a column without a type: %+v", row[0])
	}
	if row[1].Kind != Bool || row[1].Int != 1 {
		t.Errorf("a bool: %+v", row[1])
	}
	if row[2].Kind != Time || !row[2].Time.Equal(at) {
		t.Errorf("a time: %+v", row[2])
	}
	// What is in the column is a text that sorts and that SQLite's own functions read.
	if got := must(t, db, "select c || '', date(c), b+1 from v").rows[0]; got[0].Text != "2024-02-29T23:59:59.123456789Z" || got[1].Text != "2024-02-29" || got[2].Int != 2 {
		t.Errorf("%+v", got)
	}
	// Anything else that people write into such columns stays what it is.
	for _, odd := range []Value{text("2024-02-29 23:59:59"), integer(5), text("2024-02-29T23:59:59Z"), text("9999-12-31T00:00:00.000000000Z")} {
		must(t, db, "update v set c=?", odd)
		if got := must(t, db, "select c from v").rows[0][0]; got.Kind != odd.Kind || got.Text != odd.Text || got.Int != odd.Int {
			t.Errorf("%+v came back as %+v", odd, got)
		}
	}
}

func TestOutcomes(t *testing.T) {
	db := openTest(t, nil)
	if out := must(t, db, "create table t(id integer primary key, a)"); out.Affected != 0 || out.LastID != 0 {
		t.Errorf("%+v", out)
	}
	if out := must(t, db, "insert into t(a) values(1),(2),(3)"); out.Affected != 3 || out.LastID != 3 {
		t.Errorf("%+v", out)
	}
	if out := must(t, db, "select 1"); out.Affected != 0 || out.LastID != 0 {
		t.Errorf("a select after an insert: %+v", out)
	}
	if out := must(t, db, "update t set a=a+1 where id>1"); out.Affected != 2 || out.LastID != 0 {
		t.Errorf("%+v", out)
	}
	if out := must(t, db, "delete from t"); out.Affected != 3 {
		t.Errorf("%+v", out)
	}
	if out := must(t, db, "insert into t(a) values(7) returning id, a as x"); out.Affected != 1 || len(out.rows) != 1 || out.columns[1] != "x" {
		t.Errorf("%+v", out)
	}
}

func TestErrorsOfSQLite(t *testing.T) {
	db := openTest(t, nil)
	must(t, db, "create table p(id integer primary key, u unique, n not null, c check(c>0))")
	must(t, db, "create table q(p references p(id))")
	must(t, db, "insert into p values(1,1,1,1)")
	for _, c := range []struct {
		how  Access
		sql  string
		want service.Code
	}{
		{Write, "insert into p values(1,2,1,1)", service.Exists},
		{Write, "insert into p values(2,1,1,1)", service.Exists},
		{Write, "insert into p values(2,2,null,1)", service.Conflict},
		{Write, "insert into p values(2,2,1,0)", service.Conflict},
		{Write, "insert into q values(9)", service.Conflict},
		{Write, "insert into p values('x',2,1,1)", service.BadRequest},
		{Read, "insert into p values(2,2,1,1)", service.ReadOnly},
		{Read, "create table z(a)", service.ReadOnly},
		{Read, "insert into p values(2,2,1,1) returning id", service.ReadOnly},
		{Read, "selec 1", service.BadRequest},
		{Read, "select * from nowhere", service.BadRequest},
		{Read, "select ?", service.BadRequest},
		{Read, "", service.BadRequest},
		{Read, " -- nothing", service.BadRequest},
		{Read, "select 1; select 2", service.BadRequest},
		{Read, "select 1;;/* x */ -- y\n;", ""},
		{Read, "select 'it''s'", ""},
		{Read, `select "no such column"`, service.BadRequest},
	} {
		if _, err := do(db, c.how, c.sql); service.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", c.sql, err, c.want)
		}
	}
	if got := must(t, db, "select count(*) from p").rows[0][0].Int; got != 1 {
		t.Errorf("%d rows", got)
	}
}

func TestParameters(t *testing.T) {
	db := openTest(t, nil)
	runP := func(sql string, params ...Param) error {
		return db.Do(context.Background(), Scope{Single: true}, func(tx Tx) error {
			_, err := tx.Run(context.Background(), sql, params, func([]string) error { return nil }, func([]Value) error { return nil })
			return err
		})
	}
	a, b := Param{Name: "a"}, Param{Name: "b"}
	for _, c := range []struct {
		sql    string
		params []Param
		ok     bool
	}{
		{"select :a, @b", []Param{a, b}, true},
		{"select :a, :a", []Param{a}, true},
		{"select :a", nil, false},
		{"select :a", []Param{a, a}, false},
		{"select :a", []Param{b}, false},
		{"select ?", []Param{{}, {}}, false},
		{"select ?2", []Param{{}}, false},
		{"select ?2", []Param{{}, {}}, true},
	} {
		if err := runP(c.sql, c.params...); (err == nil) != c.ok || err != nil && service.CodeOf(err) != service.BadRequest {
			t.Errorf("%s %v: %v", c.sql, c.params, err)
		}
	}
}

// hostile statements, each of which must fail with one of these codes, soon.
var hostile = []struct {
	name, sql string
	codes     []service.Code
}{
	{"attach", "attach 'other.db' as o", []service.Code{service.Denied}},
	{"attach memory", "attach ':memory:' as o", []service.Code{service.Denied}},
	{"detach", "detach main", []service.Code{service.Denied, service.BadRequest}},
	{"vacuum", "vacuum", []service.Code{service.Denied, service.BadRequest, service.Conflict}},
	{"vacuum into", "vacuum into 'copy.db'", []service.Code{service.Denied, service.BadRequest, service.Conflict}},
	{"pragma journal", "pragma journal_mode=off", []service.Code{service.Denied}},
	{"pragma schema", "pragma writable_schema=on", []service.Code{service.Denied}},
	{"pragma query_only", "pragma query_only=off", []service.Code{service.Denied}},
	{"pragma max_page_count", "pragma max_page_count=1000000000", []service.Code{service.Denied}},
	{"pragma temp_store_directory", "pragma temp_store_directory='/tmp'", []service.Code{service.Denied, service.BadRequest, ""}},
	{"pragma function", "select * from pragma_journal_mode", []service.Code{service.Denied, service.BadRequest}},
	{"pragma integrity", "select * from pragma_integrity_check", []service.Code{service.Denied, service.BadRequest}},
	{"begin", "begin", []service.Code{service.Denied}},
	{"commit", "commit", []service.Code{service.Denied}},
	{"savepoint", "savepoint x", []service.Code{service.Denied}},
	{"load_extension", "select load_extension('x')", []service.Code{service.Denied, service.BadRequest}},
	{"readfile", "select readfile('/etc/passwd')", []service.Code{service.Denied, service.BadRequest}},
	{"writefile", "select writefile('/tmp/x', 'y')", []service.Code{service.Denied, service.BadRequest}},
	{"fts5", "create virtual table f using fts5(a)", []service.Code{service.Denied}},
	{"rtree", "create virtual table f using rtree(a,b,c)", []service.Code{service.Denied}},
	{"temp table", "create temp table x(a)", []service.Code{service.Denied}},
	{"temp trigger", "create temp trigger x after insert on t begin select 1; end", []service.Code{service.Denied}},
	{"master", "insert into sqlite_master values('table','x','x',1,'create table x(a)')", []service.Code{service.BadRequest, service.ReadOnly}},
	{"master update", "update sqlite_master set sql='x'", []service.Code{service.BadRequest, service.ReadOnly}},
	{"json_patch", "select json_patch('{}','{}')", []service.Code{service.Denied}},
	{"zeroblob", "select zeroblob(1000000000)", []service.Code{service.TooLarge}},
	{"randomblob", "select length(randomblob(1000000000))", []service.Code{service.TooLarge}},
	{"printf width", "select length(printf('%1000000000d', 1))", []service.Code{service.TooLarge, ""}},
	{"printf precision", "select length(printf('%.*c', 1000000000, 'x'))", []service.Code{service.TooLarge, ""}},
	{"group_concat", "with recursive c(x) as (select 1 union all select x+1 from c) select length(group_concat(hex(randomblob(1000)))) from c", []service.Code{service.TooLarge, service.Timeout}},
	{"recursive", "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c", []service.Code{service.Timeout}},
	{"recursive blobs", "with recursive c(x) as (select 1 union all select x+1 from c) select sum(length(hex(randomblob(500000)))) from c", []service.Code{service.Timeout}},
	{"recursive memory", "with recursive c(x) as (select randomblob(100000) union select randomblob(100000) from c) select count(*) from c", []service.Code{service.TooLarge, service.Timeout}},
	{"sort memory", "with recursive c(x) as (select 1 union all select x+1 from c limit 100000) select hex(randomblob(5000)) y from c order by y", []service.Code{service.TooLarge, service.Timeout}},
	{"cross join", "with recursive c(x) as (select 1 union all select x+1 from c limit 1000) select count(*) from c a, c b, c d, c e", []service.Code{service.Timeout}},
	{"like bomb", "with recursive b(x) as (select printf('%.*c', 500000, 'a')), c(n) as (select 1 union all select n+1 from c) select sum(x like '%'||substr(x,1,20000)||'b%') from b, c", []service.Code{service.Timeout}},
	{"glob bomb", "with recursive b(x) as (select printf('%.*c', 500000, 'a')), c(n) as (select 1 union all select n+1 from c) select sum(x glob '*'||substr(x,1,20000)||'b*') from b, c", []service.Code{service.Timeout}},
	{"instr bomb", "with recursive b(x) as (select printf('%.*c', 500000, 'a')), c(n) as (select 1 union all select n+1 from c) select sum(instr(x, substr(x,1,250000)||'b')) from b, c", []service.Code{service.Timeout}},
	{"replace bomb", "with recursive b(x) as (select printf('%.*c', 500000, 'a')), c(n) as (select 1 union all select n+1 from c) select sum(length(replace(x, substr(x,1,250000)||'b', ''))) from b, c", []service.Code{service.Timeout}},
	{"replace growth", "select length(replace(printf('%.*c', 500000, 'a'), 'a', 'aaaa'))", []service.Code{service.TooLarge}},
	{"trim bomb", "with recursive b(x) as (select printf('%.*c', 500000, 'a')), c(n) as (select 1 union all select n+1 from c) select sum(length(trim(x, hex(zeroblob(200000))||'b'))) from b, c", []service.Code{service.Timeout}},
	{"cte doubling", "with a0 as (select 1 x)" + doubling(40) + " select count(*) from a40", []service.Code{service.TooLarge, service.BadRequest, service.Timeout}},
	{"deep parentheses", "select " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000), []service.Code{service.BadRequest}},
	{"deep selects", strings.Repeat("select * from (", 3000) + "select 1" + strings.Repeat(")", 3000), []service.Code{service.BadRequest}},
	{"deep not", "select " + strings.Repeat("not ", 10000) + "1", []service.Code{service.BadRequest}},
	{"long expression", "select 1" + strings.Repeat("+1", 20000), []service.Code{service.BadRequest}},
	{"compound", "select 1" + strings.Repeat(" union select 1", 1000), []service.Code{service.BadRequest}},
	{"columns", "select 1" + strings.Repeat(",1", 1000), []service.Code{service.BadRequest}},
	{"deep json", "select json_valid('" + strings.Repeat("[", 30000) + strings.Repeat("]", 30000) + "')", []service.Code{""}},
	{"unterminated", "select 'abc", []service.Code{service.BadRequest}},
	{"garbage", "\x01\xff\xfe\x00select", []service.Code{service.BadRequest}},
}

// slow reports whether a statement goes on until its time is over.
func slow(codes []service.Code) bool { return slices.Contains(codes, service.Timeout) }

func doubling(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, ", a%d as (select a.x from a%d a, a%d b)", i, i-1, i-1)
	}
	return b.String()
}

func TestHostileStatements(t *testing.T) {
	const limit = 300 * time.Millisecond
	db := openTest(t, func(s *Source) { s.Memory = 8 << 20 })
	must(t, db, "create table t(a)")
	for _, c := range hostile {
		for _, how := range []Access{Read, Write} {
			if (how == Write && !thorough.Slow || testing.Short() && race.Enabled) && slow(c.codes) {
				continue
			}
			ctx, cancel := context.WithTimeoutCause(context.Background(), limit, context.DeadlineExceeded)
			began := time.Now()
			_, err := doIn(ctx, db, how, c.sql)
			took := time.Since(began)
			cancel()
			ok := false
			for _, want := range append(c.codes, service.ReadOnly) {
				ok = ok || service.CodeOf(err) == want && (want != service.ReadOnly || how == Read)
			}
			if !ok {
				t.Errorf("%s (%d): %v, want one of %v", c.name, how, err, c.codes)
			}
			most := limit + 8*time.Second // a machine may be busy; on a quiet one it is half a second
			if race.Enabled {
				most = time.Minute
			}
			if took > most {
				t.Errorf("%s (%d) took %v", c.name, how, took)
			}
			if took > limit+200*time.Millisecond {
				t.Logf("%s (%d) took %v", c.name, how, took)
			}
		}
	}
	// Whatever they did, the connections still work.
	if got := must(t, db, "select count(*) from t").rows[0][0].Int; got != 0 {
		t.Errorf("%d", got)
	}
	entries, err := os.ReadDir(filepath.Dir(db.fence.path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "test.db") {
			t.Errorf("a file %s was made", e.Name())
		}
	}
}

func TestFence(t *testing.T) {
	db := openTest(t, nil)
	other := filepath.Join(t.TempDir(), "other.db")
	if _, _, err := db.fence.Open("", 0); err == nil {
		t.Error("a temporary file")
	}
	if err := db.fence.Delete(other, false); err == nil {
		t.Error("another file can be deleted")
	}
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, _ := db.fence.Access(other, 0); ok {
		t.Error("another file can be seen")
	}
	if _, err := db.fence.FullPathname("/etc/passwd"); err == nil {
		t.Error("another file has a path")
	}
}

func TestQuotas(t *testing.T) {
	db := openTest(t, func(s *Source) { s.Size = 256 << 10; s.WAL = 1 << 20 })
	must(t, db, "create table t(a)")
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		_, err = do(db, Write, "insert into t values(zeroblob(10000))")
	}
	if service.CodeOf(err) != service.Quota {
		t.Fatal(err)
	}
	if _, err := do(db, Write, "delete from t"); err != nil {
		t.Errorf("what is full can be emptied: %v", err)
	}
	must(t, db, "insert into t values(1)")

	db = openTest(t, func(s *Source) { s.Size = 1 << 30; s.WAL = 1 << 20; s.Memory = 4 << 20 })
	must(t, db, "create table t(a)")
	_, err = do(db, Write, "with recursive c(x) as (select 1 union all select x+1 from c limit 3000) insert into t select zeroblob(10000) from c")
	if service.CodeOf(err) != service.TooLarge {
		t.Fatalf("a transaction that is longer than the log: %v", err)
	}
	if got := must(t, db, "select count(*) from t").rows[0][0].Int; got != 0 {
		t.Errorf("%d rows", got)
	}
}

func TestLogStaysShort(t *testing.T) {
	db := openTest(t, func(s *Source) { s.WAL = 16 << 20 })
	must(t, db, "create table t(id integer primary key, a)")
	must(t, db, "insert into t values(1, 0)")
	// A transaction that reads, and is told to yield.
	yielded := make(chan struct{})
	reading := make(chan struct{})
	done := make(chan error)
	go func() {
		ctx, cancel := context.WithCancel(context.Background())
		done <- db.Do(ctx, Scope{Yield: func() {
			select {
			case <-yielded:
			default:
				close(yielded)
				cancel()
			}
		}}, func(tx Tx) error {
			_, err := tx.Run(ctx, "select * from t", nil, func([]string) error { return nil }, func([]Value) error {
				close(reading)
				<-ctx.Done()
				return ctx.Err()
			})
			return err
		})
	}()
	<-reading
	for i := range 200 {
		must(t, db, "insert or replace into t values(?, zeroblob(100000))", integer(int64(i%20)))
	}
	select {
	case <-yielded:
	default:
		t.Error("the reader was not told")
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for i := range 100 {
		must(t, db, "insert or replace into t values(?, zeroblob(100000))", integer(int64(i%20)))
	}
	info, err := os.Stat(db.fence.path + "-wal")
	if err != nil || info.Size() > 16<<20 {
		t.Errorf("%v bytes, %v", info.Size(), err)
	}
}

func TestFunctionsAreSQLites(t *testing.T) {
	db := openTest(t, nil)
	for expr, want := range map[string]string{
		"'abc' like 'A%'": "1", "'abc' like 'a_c'": "1", "'abc' like 'b'": "0", "'a%c' like 'a!%c' escape '!'": "1", "'abc' like 'a!%c' escape '!'": "0",
		"'ÄB' like 'äb'": "0", "'x' like null": "", "'abc' like '%'": "1", "'' like '%'": "1", "'' like '_'": "0", "'abcbc' like '%bc'": "1",
		"'abc' glob 'a*'": "1", "'abc' glob 'A*'": "0", "'abc' glob 'a[a-c]c'": "1", "'abc' glob 'a[^b]c'": "0", "'a]c' glob 'a[]]c'": "1", "'abc' glob 'a[b'": "0", "'äöü' glob '?ö?'": "1",
		"instr('äbc','c')": "3", "instr('abc','')": "1", "instr(x'0102','x')": "0", "instr(x'010203',x'03')": "3", "instr('abc','x')": "0",
		"replace('aXbX','X','yy')": "ayybyy", "replace('abc','','x')": "abc", "replace(123,2,'x')": "1x3", "replace(null,1,2)": "",
		"trim('  a ')": "a", "ltrim('xxaxx','x')": "axx", "rtrim('xxaxx','x')": "xxa", "trim('äaä','ä')": "a", "trim('abc','')": "abc",
		"hex(unhex('0A-0b','-'))": "0A0B", "unhex('0-1','-') is null": "1", "unhex('zz','') is null": "1",
	} {
		got, err := do(db, Read, "select cast(("+expr+") as text)")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got.rows[0][0].Text != want {
			t.Errorf("%s is %q, want %q", expr, got.rows[0][0].Text, want)
		}
	}
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	db := openTest(t, nil)
	must(t, db, "create table t(a)")
	err := db.Do(context.Background(), Scope{Access: Write}, func(tx Tx) error {
		none := func([]string) error { return nil }
		if _, err := tx.Run(context.Background(), "insert into t values(1)", nil, none, func([]Value) error { return nil }); err != nil {
			return err
		}
		got, err := do(db, Read, "select count(*) from t")
		if err != nil || got.rows[0][0].Int != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		// A second writer waits until its time is over.
		ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, context.DeadlineExceeded)
		defer cancel()
		if _, err := doIn(ctx, db, Write, "insert into t values(2)"); service.CodeOf(err) != service.Busy {
			t.Errorf("a second writer: %v", err)
		}
		return errors.New("not this one")
	})
	if err == nil || err.Error() != "not this one" {
		t.Error(err)
	}
	if got := must(t, db, "select count(*) from t").rows[0][0].Int; got != 0 {
		t.Errorf("%d rows after the rollback", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("no database at all ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(dir, "text"), dir, filepath.Join(dir, "no", "folder.db")} {
		s := testSource(t)
		s.File = file
		if db, err := SQLite.Open(context.Background(), s); err == nil {
			_ = db.Close()
			t.Errorf("%s was opened", file)
		} else {
			t.Log(err)
		}
	}
}
