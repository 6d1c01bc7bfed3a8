package sql

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"pgregory.net/rapid"
)

// TestErrors is the table of errors: which request is refused with which code.
func TestErrors(t *testing.T) {
	w := newWorld(t, false, nil)
	rw := w.actor("rw", &onlyMain, service.Bounds{Bytes: 1 << 20})
	ro := w.actor("ro", &readMain, service.Bounds{})
	both := w.actor("both", &Grant{Databases: map[string]string{"main": "rw", "gone": "ro", "other": "ro"}, Rows: 3, Answer: 2000, Statements: 2}, service.Bounds{})
	nobody := w.actor("nobody", nil, service.Bounds{})
	if _, err := w.ask(rw, []any{"exec", m{"sql": "insert into account(name, has) values('a',1),('b',2),('c',3),('d',4)"}}); err != "" {
		t.Fatal(err)
	}
	q := "select name from account"
	for _, c := range []struct {
		who  host.Ref
		what any
		want string // begin of the error; "" is none
	}{
		{nobody, []any{"query", m{"sql": q}}, "denied: sql is not granted"},
		{rw, []any{"query", m{"sql": q}}, ""},
		{rw, []any{"query", m{"sql": q, "db": "main"}}, ""},
		{rw, []any{"query", m{"sql": q, "db": "other"}}, "denied: "},
		{rw, []any{"query", m{"sql": q, "db": "../main"}}, "denied: "},
		{both, []any{"query", m{"sql": "select 1"}}, "bad_request: db is missing"},
		{both, []any{"query", m{"sql": "select 1", "db": "gone"}}, "not_found: "},
		{ro, []any{"query", m{"sql": q}}, ""},
		{ro, []any{"exec", m{"sql": "delete from account"}}, "read_only: "},
		{ro, []any{"query", m{"sql": "delete from account"}}, "read_only: "},
		{ro, []any{"tx", m{"statements": []any{m{"sql": "delete from account"}}}}, "read_only: "},
		{ro, []any{"tx", m{"access": "read", "statements": []any{m{"sql": "delete from account"}}}}, "read_only: statement 0: "},
		{ro, []any{"tx", m{"access": "read", "statements": []any{m{"sql": q}}}}, ""},
		{rw, []any{"fly", m{}}, "bad_request: there is no operation"},
		{rw, []any{"query"}, "bad_request: "},
		{rw, "query", "bad_request: "},
		{rw, []any{"query", nil}, "bad_request: "},
		{rw, []any{"query", m{}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": q, "more": 1}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": 1}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": q, "rows": 0}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": q, "rest": "some"}}, "bad_request: query: "},
		{rw, []any{"exec", m{"sql": q, "rest": "page"}}, "bad_request: rest "},
		{rw, []any{"query", m{"sql": "select ?", "params": []any{uint64(math.MaxUint64)}}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": "select ?", "params": []any{math.NaN()}}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": "select ?", "params": []any{[]any{}}}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": "select ?", "params": []any{m{"tim": 1}}}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": "select ?", "params": m{"": 1}}}, "bad_request: query: "},
		{rw, []any{"query", m{"sql": "select 1" + strings.Repeat(" ", 70<<10)}}, "too_large: "},
		{rw, []any{"query", m{"sql": "select 1\x00"}}, "bad_request: "},
		{rw, []any{"query", m{"sql": "select ?", "params": make([]any, 2000)}}, "too_large: "},
		{rw, []any{"query", m{"sql": "select ?", "params": []any{make([]byte, 2<<20)}}}, "too_large: "},
		{both, []any{"query", m{"db": "main", "sql": q}}, "too_large: more than 3 rows"},
		{both, []any{"query", m{"db": "main", "sql": q, "rest": "cut"}}, ""},
		{both, []any{"query", m{"db": "main", "sql": "select zeroblob(3000)"}}, "too_large: "},
		{both, []any{"query", m{"db": "main", "sql": "select zeroblob(3000)", "rest": "page"}}, "too_large: a row"},
		{both, []any{"query", m{"db": "main", "sql": "select 1 as '" + strings.Repeat("x", 3000) + "'"}}, "too_large: the names"},
		{both, []any{"tx", m{"db": "main", "statements": []any{m{"sql": q}, m{"sql": q}, m{"sql": q}}}}, "bad_request: tx: "},
		{rw, []any{"tx", m{"statements": []any{}}}, "bad_request: tx: "},
		{rw, []any{"tx", m{"statements": []any{m{"sql": q, "rest": "page"}}}}, "bad_request: tx: "},
		{rw, []any{"tx", m{"access": "steal", "statements": []any{m{"sql": q}}}}, "bad_request: tx: "},
		{rw, []any{"tx", m{"statements": []any{m{"sql": q, "expect": m{"rows": []any{2, 1}}}}}}, "bad_request: tx: "},
		{rw, []any{"exec", m{"sql": "insert into account(name, has) values('a', 1)"}}, "exists: "},
		{rw, []any{"exec", m{"sql": "insert into account(name, has) values('z', null)"}}, "conflict: "},
		{rw, []any{"exec", m{"sql": "attach 'x' as y"}}, "denied: "},
	} {
		if _, err := w.ask(c.who, c.what); c.want == "" && err != "" || !strings.HasPrefix(err, c.want) || c.want != "" && err == "" {
			t.Errorf("%.120v: %q, want %q", fmt.Sprint(c.what), err, c.want)
		}
	}
	got, _ := w.ask(ro, []any{"query", m{"sql": "select count(*) from account"}})
	if fmt.Sprint(got["rows"]) != "[[4]]" {
		t.Error(got)
	}
}

func TestAnswersOfService(t *testing.T) {
	w := newWorld(t, false, nil)
	a := w.actor("a", &onlyMain, service.Bounds{})
	for _, c := range []struct{ what, want any }{
		{[]any{"exec", m{"sql": "insert into account(name, has) values(:n, :h)", "params": m{"n": "x", "h": 5}}}, "map[affected:1 last_id:1]"},
		{[]any{"exec", m{"sql": "update account set has = 6 returning id, has"}}, "map[affected:1 columns:[id has] end:all rows:[[1 6]]]"},
		{[]any{"query", m{"sql": "select has from account where id = 9"}}, "map[columns:[has] end:all rows:[]]"},
		{[]any{"query", m{"sql": "select value from json_each('[1,2,3]')", "rows": 2, "rest": "cut"}}, "map[columns:[value] end:cut rows:[[1] [2]]]"},
		{[]any{"query", m{"sql": "select value from json_each('[1,2,3]')", "rest": "page"}}, "map[columns:[value] end:all rows:[[1] [2] [3]]]"},
		{[]any{"query", m{"sql": "select ?1, ?1 + 0.5, null, x'0a', 'é', 1=1", "params": []any{true}}}, "map[columns:[?1 ?1 + 0.5 null x'0a' 'é' 1=1] end:all rows:[[1 1.5 <nil> [10] é 1]]]"},
		{[]any{"tx", m{"statements": []any{m{"sql": "delete from account", "expect": m{"affected": []any{1, 1}}}, m{"sql": "select 1", "expect": m{"rows": []any{1, 1}}}}}}, "map[results:[map[affected:1] map[columns:[1] end:all rows:[[1]]]]]"},
	} {
		got, err := w.ask(a, c.what)
		if fmt.Sprint(got) != c.want || err != "" {
			t.Errorf("%v: %v %s, want %v", c.what, got, err, c.want)
		}
	}
}

// A transaction whose expectation does not hold has done nothing.
func TestExpectations(t *testing.T) {
	w := newWorld(t, false, nil)
	a := w.actor("a", &onlyMain, service.Bounds{})
	insert := m{"sql": "insert into account(name, has) values('x', 1)"}
	for _, second := range []any{
		m{"sql": "update account set has = 2 where name = 'nobody'", "expect": m{"affected": []any{1, 1}}},
		m{"sql": "select 1 where 0", "expect": m{"rows": []any{1, 9}}},
	} {
		if _, err := w.ask(a, []any{"tx", m{"statements": []any{insert, second}}}); !strings.HasPrefix(err, "conflict: statement 1: 0 rows") {
			t.Error(err)
		}
	}
	if _, err := w.ask(a, []any{"tx", m{"statements": []any{insert, insert}}}); !strings.HasPrefix(err, "exists: statement 1: ") {
		t.Error(err)
	}
	got, _ := w.ask(a, []any{"query", m{"sql": "select count(*) from account"}})
	if fmt.Sprint(got["rows"]) != "[[0]]" {
		t.Error(got)
	}
}

// A query ends when its time is over, and when its asker ends.
func TestQueriesEnd(t *testing.T) {
	w := newWorld(t, false, nil)
	forever := "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c"
	a := w.actor("a", &readMain, service.Bounds{Timeout: 50 * time.Millisecond})
	if _, err := w.ask(a, []any{"query", m{"sql": forever}}); !strings.HasPrefix(err, "timeout: ") {
		t.Error(err)
	}
	b := w.actor("b", &readMain, service.Bounds{})
	go func() { _, _ = w.sys.Ask(t.Context(), b, []any{"query", m{"sql": forever}}) }()
	db := w.running.Provider().(*provider).dbs["main"].Database.(*sqlite)
	waitFor(t, func() bool { return db.read.Stats().InUse == 1 })
	w.sys.Stop(b)
	waitFor(t, func() bool { return db.read.Stats().InUse == 0 })
}

func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// A cursor that is left alone ends, and gives back its connection and its place.
func TestCursorsEnd(t *testing.T) {
	w := newWorld(t, true, nil)
	a := w.actor("a", &readMain, service.Bounds{})
	page := []any{"query", m{"sql": "with recursive c(x) as (select 1 union all select x+1 from c) select x from c", "rows": 2, "rest": "page"}}
	db := w.running.Provider().(*provider).dbs["main"].Database.(*sqlite)
	for range 2 {
		got, err := w.ask(a, page)
		if err != "" || got["end"] != "page" || fmt.Sprint(got["rows"]) != "[[1] [2]]" {
			t.Fatal(got, err)
		}
	}
	if _, err := w.ask(a, page); !strings.HasPrefix(err, "busy: 2 results") {
		t.Error(err)
	}
	waitFor(t, func() bool { w.clock.Advance(DefaultCursorIdle); return db.read.Stats().InUse == 0 })
	open := w.running.Provider().(*provider).cursors
	waitFor(t, func() bool { open.mu.Lock(); defer open.mu.Unlock(); return len(open.of) == 0 })
	if _, err := w.ask(a, page); err != "" {
		t.Error(err)
	}
	w.sys.Stop(a)
	waitFor(t, func() bool { return db.read.Stats().InUse == 0 })
}

// Many requests at once are refused beyond the grant's bound, and the next one does well.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, false, nil)
	a := w.actor("a", &onlyMain, service.Bounds{AtOnce: 4})
	const n = 200
	answers := make(chan string, n)
	for range n {
		go func() {
			_, err := w.ask(a, []any{"query", m{"sql": "select 1"}})
			code, _, _ := strings.Cut(err, ":")
			answers <- code
		}()
	}
	count := map[string]int{}
	for range n {
		count[<-answers]++
	}
	if count[""]+count["busy"] != n || count[""] < 4 {
		t.Error(count)
	}
	if _, err := w.ask(a, []any{"query", m{"sql": "select 1"}}); err != "" {
		t.Error(err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		d    DatabaseSettings
		want string
	}{
		{DatabaseSettings{Driver: "oracle"}, "databases.x.driver: "},
		{DatabaseSettings{DSN: "x"}, "databases.x.dsn: "},
		{DatabaseSettings{}, ""},
	} {
		err := Service.CheckSettings(&Settings{Databases: map[string]DatabaseSettings{"x": c.d}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.d, err)
		}
	}
	if err := Service.CheckGrant(&Grant{}); err == nil {
		t.Error("a grant of no database")
	}
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(t.Context()) }()
	if _, err := Service.Start(sys, &service.Env{}, &Settings{Databases: map[string]DatabaseSettings{"x": {}}}); err == nil || !strings.Contains(err.Error(), "kept in the state") {
		t.Error(err)
	}
}

// TestModel compares transactions with a map.
func TestModel(t *testing.T) {
	w := newWorld(t, false, nil)
	a := w.actor("a", &onlyMain, service.Bounds{})
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := w.ask(a, []any{"exec", m{"sql": "delete from account"}}); err != "" {
			rt.Fatal(err)
		}
		model := map[string]int64{}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		rt.Repeat(map[string]func(*rapid.T){
			"tx": func(rt *rapid.T) {
				next := map[string]int64{}
				for k, v := range model {
					next[k] = v
				}
				var statements []any
				ok := true
				for range rapid.IntRange(1, 4).Draw(rt, "n") {
					k, v := name.Draw(rt, "k"), rapid.Int64().Draw(rt, "v")
					_, there := next[k]
					switch rapid.IntRange(0, 2).Draw(rt, "what") {
					case 0:
						statements = append(statements, m{"sql": "insert into account(name, has) values(?, ?)", "params": []any{k, v}})
						ok = ok && !there
						next[k] = v
					case 1:
						statements = append(statements, m{"sql": "update account set has = ? where name = ?", "params": []any{v, k}, "expect": m{"affected": []any{1, 1}}})
						ok = ok && there
						next[k] = v
					case 2:
						statements = append(statements, m{"sql": "delete from account where name = ?", "params": []any{k}})
						delete(next, k)
					}
				}
				_, err := w.ask(a, []any{"tx", m{"statements": statements}})
				if (err == "") != ok {
					rt.Fatalf("%v: %q, want ok %v", statements, err, ok)
				}
				if ok {
					model = next
				}
			},
			"": func(rt *rapid.T) {
				got, err := w.ask(a, []any{"query", m{"sql": "select name, has from account"}})
				if err != "" {
					rt.Fatal(err)
				}
				rows := got["rows"].([]any)
				if len(rows) != len(model) {
					rt.Fatalf("%v, want %v", rows, model)
				}
				for _, r := range rows {
					k, v := r.([]any)[0].(string), r.([]any)[1]
					if fmt.Sprint(v) != fmt.Sprint(model[k]) {
						rt.Fatalf("%s: %v, want %d", k, v, model[k])
					}
				}
			},
		})
	})
}

// FuzzDecode: what a guest sends is read or refused, and a value that was read is written as it was.
func FuzzDecode(f *testing.F) {
	for _, v := range []any{
		m{"sql": "select 1", "params": []any{1, "x", nil, true, 1.5, []byte{1}, m{"time": 5}}, "rows": 3, "rest": "cut", "db": "x"},
		m{"sql": "select 1", "params": m{"a": 1}},
		m{"access": "read", "statements": []any{m{"sql": "x", "expect": m{"affected": []any{1, 2}, "rows": []any{0, 0}}}}},
		m{"rows": 5},
	} {
		b, err := host.Encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	b := bounds{params: 100, statements: 10}
	f.Fuzz(func(t *testing.T, data []byte) {
		if q, err := decodeSingle(data, b); err == nil && (len(q.statements) != 1 || q.statements[0].sql == "" || len(q.statements[0].params) > b.params) {
			t.Errorf("%+v", q)
		}
		if q, err := decodeTx(data, b); err == nil && (len(q.statements) == 0 || len(q.statements) > b.statements) {
			t.Errorf("%+v", q)
		}
		_, _ = decodeNext(abi.NewReader(data))
		r := abi.NewReader(data)
		if v := readValue(r); r.Done() == nil {
			w := abi.NewWriter(nil)
			appendValue(w, &v)
			again := readValue(abi.NewReader(w.Bytes()))
			if again.Kind != v.Kind || again.Int != v.Int || again.Float != v.Float || again.Text != v.Text || !bytes.Equal(again.Blob, v.Blob) || !again.Time.Equal(v.Time) {
				t.Errorf("%+v, %+v", v, again)
			}
		}
	})
}

// FuzzRest: what follows a statement is either nothing for SQLite, too, or another statement.
func FuzzRest(f *testing.F) {
	for _, s := range []string{"", ";", " -- x", "/* */", "/* ", "-- x\nselect 1", ";;select 1", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !restOf(s) && strings.Contains(strings.ToLower(s), "select") && !strings.Contains(s, "--") && !strings.Contains(s, "/*") {
			t.Errorf("%q", s)
		}
	})
}

// FuzzMatch compares our LIKE with the one of a plain definition.
func FuzzMatch(f *testing.F) {
	f.Add("a%b_", "axxbc")
	f.Add("%%a%", "ba")
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 24 {
			return
		}
		got, _ := matches(t.Context(), []byte(p), []byte(s), func(b []byte) (token, int) { return likeToken(b, -1) })
		if want := plainLike([]rune(p), []rune(s)); got != want {
			t.Errorf("%q like %q: %v", s, p, got)
		}
	})
}

func plainLike(p, s []rune) bool {
	if len(p) == 0 {
		return len(s) == 0
	}
	if p[0] == '%' {
		return plainLike(p[1:], s) || len(s) > 0 && plainLike(p, s[1:])
	}
	return len(s) > 0 && (p[0] == '_' || lower(p[0]) == lower(s[0])) && plainLike(p[1:], s[1:])
}

func TestFlood(t *testing.T) {
	w := newWorld(t, false, nil)
	servicetest.Flood(t, w.sys, w.running, Service.Grant(onlyMain, service.Bounds{}), "exec", func(int) any {
		return m{"sql": "insert into account(has) values(?)", "params": []any{1}}
	})
}
