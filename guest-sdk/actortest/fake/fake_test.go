//go:build !wasip1

package fake_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest/fake"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/schedule"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/sql"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

// user does what a test tells it, and notes what comes of it.
type user struct{}

var (
	todo  func(ctx *actor.Context)
	deaf  bool
	heard []string
	runs  func(ctx *actor.Context, run schedule.Run) error
)

func hear(format string, args ...any) { heard = append(heard, fmt.Sprintf(format, args...)) }

func (user) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Text() == "do" {
		todo(ctx)
		return nil
	}
	if deaf {
		hear("a message")
		return nil
	}
	if c, ok := kv.Changes(ctx, m); ok {
		for _, x := range c.Changes {
			hear("%d %s %s=%s %v", c.Seq, x.Op, x.Key, x.Value, c.Gap)
		}
		return nil
	}
	if run, ok := schedule.RunOf(m); ok {
		return runs(ctx, run)
	}
	return actor.ErrUnhandled
}

func init() { actor.Register("user", func() actor.Actor { return user{} }) }

// world is a world with one user; its services are there before.
type world struct {
	*testing.T
	*actortest.World
	user *actortest.Actor
}

func newWorld(t *testing.T) *world {
	heard = nil
	return &world{T: t, World: actortest.NewWorld(t)}
}

// does has the user do something, and says what was heard since.
func (w *world) does(what func(ctx *actor.Context)) {
	w.Helper()
	if w.user == nil {
		w.user = w.Spawn("user")
	}
	todo = what
	w.Tell(w.user, actor.Text("do"))
}

func (w *world) wants(want ...string) {
	w.Helper()
	if got := strings.Join(heard, "\n"); got != strings.Join(want, "\n") {
		w.Errorf("heard\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	heard = nil
}

func TestKV(t *testing.T) {
	w := newWorld(t)
	s := fake.NewKV(w.World)
	s.Put("a", []byte("1"))
	w.does(func(ctx *actor.Context) {
		kv.Get(ctx, "a", func(ctx *actor.Context, e kv.Entry, err error) error {
			hear("%s %s %v", e.Key, e.Value, err)
			kv.Put(ctx, "a", []byte("2"), kv.Write{IfVersion: e.Version}, nil)
			kv.Put(ctx, "a", []byte("3"), kv.Write{IfVersion: e.Version}, func(_ *actor.Context, _ uint64, err error) error {
				hear("conflict: %v", errors.Is(err, service.ErrConflict))
				return nil
			})
			return nil
		})
		kv.Add(ctx, "n", 5, kv.Write{TTL: time.Minute}, func(_ *actor.Context, n int64, err error) error { hear("%d %v", n, err); return nil })
	})
	w.wants("a 1 <nil>", "5 <nil>", "conflict: true")
	if s.Count("n") != 5 || string(s.Value("a")) != "2" || fmt.Sprint(s.Keys("")) != "[a n]" {
		t.Errorf("%d %s %v", s.Count("n"), s.Value("a"), s.Keys(""))
	}
	w.Advance(time.Minute)
	if _, ok := s.Get("n"); ok {
		t.Error("it has not ended")
	}
	s.SetCount("n", 7)
	s.Delete("a")
	if s.Count("n") != 7 || s.Value("a") != nil {
		t.Errorf("%d %s", s.Count("n"), s.Value("a"))
	}
}

// Pages are as small as the query says, and all of them are everything.
func TestKVEach(t *testing.T) {
	w := newWorld(t)
	s := fake.NewKV(w.World, "one", "two")
	for i := range 7 {
		s.In("two").Put(fmt.Sprint("k", i), []byte{byte('a' + i)})
	}
	w.does(func(ctx *actor.Context) {
		kv.In("two").Each(ctx, kv.Query{Prefix: "k", Limit: 3, Values: true, Reverse: true}, func(_ *actor.Context, e kv.Entry) error {
			hear("%s %s", e.Key, e.Value)
			return nil
		}, func(_ *actor.Context, err error) error { hear("%v", err); return nil })
		kv.Get(ctx, "k1", func(_ *actor.Context, _ kv.Entry, err error) error { hear("%v", err); return nil })
		kv.In("three").Get(ctx, "k1", func(_ *actor.Context, _ kv.Entry, err error) error { hear("%v", err); return nil })
	})
	w.wants("k6 g", "k5 f", "k4 e", "bad_request: namespace must be one of one, two", `denied: namespace "three" is not granted, but one, two`, "k3 d", "k2 c", "k1 b", "k0 a", "<nil>")
	if n := len(s.Calls()); n != 5 {
		t.Errorf("%d requests", n)
	}
}

// A watch hears of changes below its prefix, in their order, and of the ends of entries; a second one replaces it.
func TestKVWatch(t *testing.T) {
	w := newWorld(t)
	s := fake.NewKV(w.World)
	var ref actor.Ref
	watch := func(ctx *actor.Context) {
		kv.Watch(ctx, "a", true, func(_ *actor.Context, x actor.Ref, _ uint64, err error) error { ref = x; return err })
	}
	w.does(watch)
	s.Put("a/1", []byte("x"))
	s.Put("b", []byte("y"))
	s.Delete("a/1")
	w.wants("1 put a/1=x false", "2 delete a/1= false")
	w.does(func(ctx *actor.Context) {
		kv.Batch(ctx, []kv.Op{kv.PutOp("a", []byte("1"), kv.Write{TTL: time.Second}), kv.PutOp("aa", nil, kv.Write{})}, nil)
	})
	w.Advance(time.Second)
	w.wants("3 put a=1 false", "3 put aa= false", "4 expire a= false")
	w.does(watch)
	s.Put("a", []byte("2"))
	w.wants("1 put a=2 false")
	w.does(func(ctx *actor.Context) { kv.Unwatch(ctx, ref) })
	s.Put("a", []byte("3"))
	w.wants()
	deaf = true // one message at a time: the next comes when this one is answered
	defer func() { deaf = false }()
	w.does(watch)
	s.Put("a", []byte("4"))
	s.Put("a", []byte("5"))
	w.wants("a message")
}

// Faults: an error instead of what was requested, or although it was done, or no answer at all; and answers that take time.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	s := fake.NewKV(w.World)
	put := func(key string) func(ctx *actor.Context) {
		return func(ctx *actor.Context) {
			kv.Store{Timeout: time.Second}.Put(ctx, key, nil, kv.Write{}, func(ctx *actor.Context, _ uint64, err error) error {
				hear("%s %s %v", key, ctx.Now().Format("05.0"), service.CodeOf(err))
				return nil
			})
		}
	}
	s.FailOnce(service.Busy)
	w.does(put("a"))
	w.does(put("b"))
	s.Fail(func(c *actortest.Call) *fake.Fault { return &fake.Fault{Code: service.Timeout, Done: true} })
	w.does(put("c"))
	s.Fail(func(c *actortest.Call) *fake.Fault { return &fake.Fault{Silent: true} })
	w.does(put("d"))
	w.Advance(time.Second)
	s.Fail(nil)
	s.Delay(200 * time.Millisecond)
	w.does(put("e"))
	w.Advance(time.Second)
	w.wants("a 00.0 busy", "b 00.0 ", "c 00.0 timeout", "d 01.0 timeout", "e 01.2 ")
	if got := fmt.Sprint(s.Keys("")); got != "[b c e]" {
		t.Error(got)
	}
}

func TestHTTP(t *testing.T) {
	w := newWorld(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET api.example.com/users/{id}", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("ETag", "x")
		fmt.Fprintf(rw, "user %s of %s", r.PathValue("id"), r.Header.Get("accept"))
	})
	mux.HandleFunc("POST api.example.com/moved", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "https://api.example.com/users/9", http.StatusSeeOther)
	})
	mux.HandleFunc("/large", func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, strings.Repeat("x", 100_000)) })
	mux.HandleFunc("PUT /large", func(rw http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		rw.WriteHeader(201)
		fmt.Fprint(rw, n)
	})
	mux.HandleFunc("/gone", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s := fake.NewHTTP(w.World, mux)
	then := func(ctx *actor.Context, res *httpx.Response, err error) error {
		if err != nil {
			hear("%v", err)
			return nil
		}
		return res.ReadAll(ctx, 1<<20, time.Second, func(_ *actor.Context, body []byte, err error) error {
			hear("%d %s %s %d %.30s %v", res.Status, res.URL, res.Header("etag"), len(body), body, err)
			return nil
		})
	}
	w.does(func(ctx *actor.Context) {
		httpx.Do(ctx, &httpx.Request{URL: "https://api.example.com/users/7", Headers: []httpx.Header{{Name: "Accept", Value: "text"}}}, then)
		httpx.Post(ctx, "https://api.example.com/moved", "text/plain", []byte("hi"), then)
		httpx.Do(ctx, &httpx.Request{Method: "POST", URL: "https://api.example.com/moved", Redirects: httpx.Stay}, then)
		httpx.Get(ctx, "http://other/large", then)
		httpx.Do(ctx, &httpx.Request{URL: "http://other/large", Most: 10}, then)
		httpx.Get(ctx, "http://other/gone", then)
		httpx.Get(ctx, "gopher://other/", then)
		httpx.Upload(ctx, &httpx.Request{Method: "PUT", URL: "http://other/large"}, httpx.Unknown, func(ctx *actor.Context, to actor.Ref, err error) error {
			stream.WriteAll(ctx, to, make([]byte, 70_000), time.Second, func(ctx *actor.Context, err error) error {
				httpx.Finish(ctx, to, time.Second, then)
				return err
			})
			return err
		})
	})
	want := []string{
		"200 https://api.example.com/users/7 x 14 user 7 of text <nil>", "200 https://api.example.com/users/9 x 10 user 9 of  <nil>",
		"303 https://api.example.com/moved  0  <nil>", "too_large: the body of the answer is larger than was allowed", "failed: the server has closed the connection",
		"bad_request: the URL gopher://other/", "201 http://other/large  5 70000 <nil>", "200 http://other/large  100000 " + strings.Repeat("x", 30) + " <nil>",
	}
	w.wants(want...)
	all := s.Requests()
	if len(all) != 8 || string(all[1].Body) != "hi" || all[1].Path != "/user/user" || all[2].Method != "GET" || all[2].Header.Get("content-type") != "" || len(all[7].Body) != 70_000 {
		t.Errorf("%d requests: %+v", len(all), all[:3])
	}
}

func TestSQL(t *testing.T) {
	w := newWorld(t)
	s := fake.NewSQL(w.World)
	var visits []string
	s.On("insert into visits(who) values(?)", func(q fake.Query) fake.Rows {
		if q.Params[0] == "eve" {
			return fake.Refuse(service.Exists, "visits.who")
		}
		visits = append(visits, q.Params[0].(string))
		return fake.Rows{Affected: 1, LastID: int64(len(visits))}
	})
	s.On("select who, n, at from visits where n > :least", func(q fake.Query) fake.Rows {
		out := fake.Rows{Columns: []string{"who", "n", "at"}}
		for i, who := range visits {
			out.Rows = append(out.Rows, []any{who, i, time.Unix(int64(i), 0)})
		}
		hear("least %v of %s", q.Param("least"), q.DB)
		return out
	})
	s.Transactions(func([]fake.Query) func() {
		before := len(visits)
		return func() { visits = visits[:before] }
	})
	then := func(_ *actor.Context, r *sql.Result, err error) error {
		if err != nil {
			hear("%v", err)
			return nil
		}
		hear("%d rows, affected %d, id %d, %s", r.Len, r.Affected, r.LastID, r.End)
		return r.Each(func(row *sql.Row) { hear("%s %d %s", row.Text(), row.Int(), row.Time().Format("05")) })
	}
	insert := func(who string) sql.Statement { return sql.Do("INSERT INTO visits(who)\n\tVALUES(?)", sql.Text(who)) }
	query := sql.Statement{SQL: "select who, n, at from visits where n > :least", Params: []sql.Value{sql.Int(3)}, Names: []string{"least"}}
	several := func(err bool) func(ctx *actor.Context) {
		return func(ctx *actor.Context) {
			last := insert("dan")
			if err {
				last = insert("dan").Affects(2)
			}
			sql.Tx(ctx, "", sql.Write, []sql.Statement{insert("cid"), last}, time.Second, func(_ *actor.Context, all []sql.Result, err error) error {
				hear("%d %v", len(all), err)
				return nil
			})
		}
	}
	w.does(func(ctx *actor.Context) {
		sql.Exec(ctx, "", insert("ann"), time.Second, then)
		sql.Exec(ctx, "main", insert("bob"), time.Second, then)
		sql.Exec(ctx, "main", insert("eve"), time.Second, then)
		sql.Exec(ctx, "other", insert("bob"), time.Second, then)
		sql.Query(ctx, "", query, time.Second, then)
		sql.Query(ctx, "", sql.Do("select 1"), time.Second, then)
	})
	w.wants("least 3 of main", "0 rows, affected 1, id 1, all", "0 rows, affected 1, id 2, all", "exists: visits.who", "denied: the database other is not granted, but main",
		"2 rows, affected 0, id 0, all", "ann 0 00", "bob 1 01", "bad_request: the fake has not been told what this does: select 1")
	w.does(several(true))
	w.does(several(false))
	w.wants("0 conflict: statements[1]: 1 rows were affected, which is not what was expected", "2 <nil>")
	if got := fmt.Sprint(visits); got != "[ann bob cid dan]" {
		t.Error(got)
	}
	paged := query
	paged.Rows, paged.Rest = 3, sql.Page
	w.does(func(ctx *actor.Context) {
		sql.Query(ctx, "", paged, time.Second, func(ctx *actor.Context, r *sql.Result, err error) error {
			hear("%d %s %v", r.Len, r.End, err)
			sql.Next(ctx, r.Cursor, 0, time.Second, then)
			return nil
		})
		paged.Rest = sql.Cut
		sql.Query(ctx, "", paged, time.Second, func(_ *actor.Context, r *sql.Result, err error) error { hear("%d %s", r.Len, r.End); return err })
		paged.Rest = ""
		sql.Query(ctx, "", paged, time.Second, then)
	})
	w.wants("least 3 of main", "least 3 of main", "least 3 of main", "3 page <nil>", "3 cut", "too_large: 4 rows, at most 3", "1 rows, affected 0, id 0, all", "dan 3 03")
}

func TestSchedule(t *testing.T) {
	w := newWorld(t)
	s := fake.NewSchedule(w.World)
	runs = func(ctx *actor.Context, run schedule.Run) error {
		hear("%s %s planned %s, attempt %d, missed %d, %s", ctx.Now().Format("15:04:05"), run.Entry, run.Planned.Format("15:04:05.0"), run.Attempt, run.Missed, run.Payload)
		if run.Entry == "fails" && run.Attempt < 3 {
			return ctx.ReplyError("not now")
		}
		if run.Entry == "slow" && run.Attempt == 1 {
			return nil
		}
		return ctx.Reply(nil)
	}
	set := func(e schedule.Entry) func(ctx *actor.Context) {
		return func(ctx *actor.Context) {
			schedule.Set(ctx, e, func(_ *actor.Context, st schedule.State, err error) error {
				hear("%v %s %v", st.Changed, st.Next.Format("15:04:05.0"), err)
				return nil
			})
		}
	}
	start := w.Now()
	w.does(set(schedule.Entry{Name: "once", At: start.Add(1500 * time.Millisecond), Payload: actor.Raw{0x61, 'p'}}))
	w.does(set(schedule.Entry{Name: "once", At: start.Add(1500 * time.Millisecond), Payload: actor.Raw{0x61, 'p'}}))
	w.does(set(schedule.Entry{Name: "past", At: start}))
	w.Advance(10 * time.Second)
	w.wants("true 00:00:01.5 <nil>", "false 00:00:01.5 <nil>", "false 00:00:00.0 bad_request: at: that time has passed", "00:00:01 once planned 00:00:01.5, attempt 1, missed 0, ap")
	if n := s.Entries("/user/user"); len(n) != 0 {
		t.Errorf("a single time that has run is there: %v", n)
	}
	// An error is no answer: again after 1 s and 2 s.
	w.does(set(schedule.Entry{Name: "fails", Cron: "1 0 * * *"}))
	w.Advance(time.Minute)
	w.wants("true 00:01:00.0 <nil>", "00:01:00 fails planned 00:01:00.0, attempt 1, missed 0, \xf6", "00:01:01 fails planned 00:01:00.0, attempt 2, missed 0, \xf6", "00:01:03 fails planned 00:01:00.0, attempt 3, missed 0, \xf6")
	// One that is under way lets the next ones be missed.
	w.does(set(schedule.Entry{Name: "slow", Every: 10 * time.Second, Timeout: 25 * time.Second}))
	w.Advance(50 * time.Second)
	w.wants("true 00:01:20.0 <nil>", "00:01:20 slow planned 00:01:20.0, attempt 1, missed 0, \xf6", "00:01:46 slow planned 00:01:20.0, attempt 2, missed 0, \xf6",
		"00:01:46 slow planned 00:01:40.0, attempt 1, missed 1, \xf6")
	w.does(func(ctx *actor.Context) {
		schedule.List(ctx, "", func(_ *actor.Context, all []schedule.Status, more bool, err error) error {
			for _, x := range all {
				hear("%s %s %s %s %v runs %d retries %d missed %d", x.Name, x.Cron, x.Every, x.To, x.Next.IsZero(), x.Runs, x.Retries, x.Missed)
			}
			return err
		})
		schedule.Get(ctx, "nobody", func(_ *actor.Context, _ schedule.Status, err error) error { hear("%v", err); return nil })
		schedule.Cancel(ctx, "slow", func(_ *actor.Context, found bool, err error) error { hear("%v %v", found, err); return nil })
		schedule.SetNew(ctx, schedule.Entry{Name: "fails", Every: time.Second}, func(_ *actor.Context, _ schedule.State, err error) error { hear("%v", err); return nil })
	})
	w.wants("fails 1 0 * * * 0s /user/user false runs 1 retries 2 missed 0", "slow  10s /user/user true runs 1 retries 1 missed 1",
		`not_found: there is no entry "nobody"`, "true <nil>", `exists: there is an entry "fails" already`)
	w.Advance(time.Hour)
	w.wants()
	s.Run("/user/user", "fails")
	w.wants("01:02:00 fails planned 01:02:00.0, attempt 1, missed 0, \xf6")
}
