package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// TestGuest: a guest in standard Go asks by the SDK.
func TestGuest(t *testing.T) {
	w := newWorld(t, false, nil)
	bank := w.guest("bank", "sql-bank", &onlyMain)
	for i, name := range []string{"ann", "bob"} {
		if id, err := askFor[int64](w, bank, []any{"open", name, "", 100}); err != "" || id != int64(i+1) {
			t.Fatal(id, err)
		}
	}
	if _, err := askFor[int64](w, bank, []any{"open", "ann", "", 5}); !strings.HasPrefix(err, "exists: ") {
		t.Error(err)
	}
	if left, err := askFor[int64](w, bank, []any{"move", "ann", "bob", 30}); err != "" || left != 70 {
		t.Error(left, err)
	}
	for _, to := range []string{"bob", "nobody"} {
		n := 71
		if to == "nobody" {
			n = 1
		}
		if _, err := askFor[int64](w, bank, []any{"move", "ann", to, n}); !strings.HasPrefix(err, "conflict: ") {
			t.Error(err)
		}
	}
	if has, err := askFor[int64](w, bank, []any{"balance", "ann", "", 0}); err != "" || has != 70 {
		t.Error(has, err)
	}
	if _, err := askFor[int64](w, bank, []any{"add", "", "", 97}); err != "" {
		t.Error(err)
	}
	// 99 rows, in pages of 10, and of 1: the next page is asked for at once.
	for range 5 {
		if sum, err := askFor[[2]int64](w, bank, []any{"sum", "", "", 1}); err != "" || sum != [2]int64{99, 297} {
			t.Error(sum, err)
		}
	}
	if sum, err := askFor[[2]int64](w, bank, []any{"sum", "", "", 10}); err != "" || sum != [2]int64{99, 297} {
		t.Error(sum, err)
	}
	if sum, err := askFor[[2]int64](w, bank, []any{"sum", "", "", 1000}); err != "" || sum != [2]int64{99, 297} {
		t.Error(sum, err)
	}

	reader := w.guest("reader", "sql-bank", &readMain)
	if has, err := askFor[int64](w, reader, []any{"balance", "bob", "", 0}); err != "" || has != 130 {
		t.Error(has, err)
	}
	if _, err := askFor[int64](w, reader, []any{"open", "carl", "", 5}); !strings.HasPrefix(err, "read_only: ") {
		t.Error(err)
	}
	stranger := w.guest("stranger", "sql-bank", nil)
	if _, err := askFor[int64](w, stranger, []any{"balance", "bob", "", 0}); !strings.HasPrefix(err, "denied: ") {
		t.Error(err)
	}
}

// TestCursorOfAGuest: pages come as they are asked for; requests that are no requests are refused.
func TestCursorOfAGuest(t *testing.T) {
	w := newWorld(t, false, nil)
	asker := w.guest("asker", "service-asker", &readMain)
	many := "select value from json_each('[1,2,3,4,5]')"
	first, err := askFor[map[string]any](w, asker, []any{"sql", "query", m{"sql": many, "rows": 2, "rest": "page"}})
	if err != "" || first["end"] != "page" {
		t.Fatal(first, err)
	}
	cursor := first["cursor"]
	for _, c := range []struct {
		op   string
		args any
		want string
	}{
		{"fly", nil, "bad_request: "},
		{"next", m{"row": 1}, "bad_request: "},
		{"next", m{"rows": 0}, "bad_request: "},
		{"next", m{"rows": 1}, "map[end:page rows:[[3]]]"},
		{"next", m{"rows": 100}, "map[end:all rows:[[4] [5]]]"},
		{"next", nil, ""},
	} {
		got, err := askFor[map[string]any](w, asker, []any{cursor, c.op, c.args})
		if c.want == "" {
			if err == "" {
				t.Errorf("after the end: %v", got)
			}
			continue
		}
		if text := err + fmt.Sprint(got); !strings.HasPrefix(strings.TrimPrefix(text, "map[]"), c.want) && fmt.Sprint(got) != c.want {
			t.Errorf("%s %v: %v %s, want %s", c.op, c.args, got, err, c.want)
		}
	}
	// A request that is forwarded has lost the grant, whoever forwards it.
	forwarder, bad := w.sys.Spawn("forwarder", host.GuestOf(servicetest.Module(t), "service-forwarder").WithArgs("sql").WithGrant("sql", Service.Grant(onlyMain, service.Bounds{})))
	if bad != nil {
		t.Fatal(bad)
	}
	if _, err := askFor[map[string]any](w, asker, []any{uint64(forwarder.UID()), "query", m{"sql": many}}); !strings.HasPrefix(err, "denied: ") {
		t.Error(err)
	}
}

// BenchmarkGuest is statements a second of one guest, one after the other.
func BenchmarkGuest(b *testing.B) {
	for _, c := range []struct{ name, what string }{{"insert", "add"}, {"query", "read"}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, false, nil)
			bank := w.guest("bank", "sql-bank", &onlyMain)
			if _, err := askFor[int64](w, bank, []any{"open", "ann", "", 1}); err != "" {
				b.Fatal(err)
			}
			b.ResetTimer()
			if _, err := askFor[int64](w, bank, []any{c.what, "ann", "", b.N}); err != "" {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkNative is the same without an actor.
func BenchmarkNative(b *testing.B) {
	for _, c := range []struct {
		name, sql string
		how       Access
	}{{"insert", "insert into account(has) values(1)", Write}, {"query", "select has from account where name = 'ann'", Read}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, false, nil)
			db := w.running.Provider().(*provider).dbs["main"]
			b.ResetTimer()
			for range b.N {
				if _, err := do(db, c.how, c.sql); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
