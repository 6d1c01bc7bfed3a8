package sql

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

func keyed(life abi.Ref, number, settled uint64) *once.Request {
	return &once.Request{Life: life, Effect: &host.Effect{Key: [16]byte{byte(life), byte(number), byte(number >> 8)}, Number: number, Settled: settled}}
}

// ledger is a database with a counter.
type ledger struct {
	*database
	clock *host.VirtualClock
}

func openLedger(t testing.TB, file string) *ledger {
	t.Helper()
	d := DatabaseSettings{File: file}
	db, err := SQLite.Open(context.Background(), d.source("test", &service.Env{Log: discard}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do(db, Write, "create table if not exists c(n integer)"); err != nil {
		t.Fatal(err)
	}
	if _, err := do(db, Write, "insert into c select 0 where not exists(select * from c)"); err != nil {
		t.Fatal(err)
	}
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	return &ledger{&database{db, d.source("test", &service.Env{Log: discard}), clock.Now}, clock}
}

func (l *ledger) add(t testing.TB, r *once.Request) []byte {
	t.Helper()
	answer, err := l.try(r, "update c set n = n + 1 returning n")
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func (l *ledger) try(r *once.Request, sql ...string) ([]byte, error) {
	q := &request{write: true}
	for _, s := range sql {
		q.statements = append(q.statements, statement{sql: s, rows: 10})
	}
	run := runSingle
	if len(sql) > 1 {
		run = runTx
	}
	answer, err := run(context.Background(), l.database, &Grant{}, q, r)
	b, _ := answer.(host.Raw)
	return b, err
}

func (l *ledger) count(t testing.TB) int64 {
	t.Helper()
	out, err := do(l.database, Read, "select n from c")
	if err != nil {
		t.Fatal(err)
	}
	return out.rows[0][0].Int
}

// keptRows is how many rows the service's table has.
func (l *ledger) keptRows(t testing.TB) (n string) {
	t.Helper()
	c, err := l.Database.(*sqlite).write.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.Raw(func(conn any) error {
		x := conn.(*connection)
		x.own = true
		defer func() { x.own = false }()
		n, err = x.ask("select count(*) from " + KeptTable)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestATransactionIsDoneOnce: one that comes again has no second effect and the same answer, until it is settled; also after the
// database was opened again. One that has failed has left nothing.
func TestATransactionIsDoneOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	l := openLedger(t, file)
	if _, err := l.try(nil, "update c set n = n + 0"); err != nil {
		t.Fatal(err)
	}
	if out, _ := do(l, Read, "select count(*) from sqlite_schema where name = '"+KeptTable+"'"); out.rows[0][0].Int != 0 {
		t.Error("there is a table without a durable actor")
	}
	first := l.add(t, keyed(7, 1, 1))
	_ = l.Close()
	l = openLedger(t, file)
	if again := l.add(t, keyed(7, 1, 1)); !bytes.Equal(again, first) || l.count(t) != 1 {
		t.Errorf("%x and %x, %d", first, again, l.count(t))
	}
	if _, err := l.try(keyed(7, 2, 1), "update c set n = n + 1", "insert into nothing values(1)"); err == nil || l.count(t) != 1 {
		t.Error(err)
	}
	for range 2 {
		if _, err := l.try(keyed(7, 2, 1), "update c set n = n + 1", "update c set n = n + 1"); err != nil || l.count(t) != 3 {
			t.Error(err, l.count(t))
		}
	}
	l.add(t, keyed(8, 1, 1))
	other := keyed(7, 2, 1)
	other.Effect.Key[9] = 1
	if l.add(t, other); l.count(t) != 5 || l.keptRows(t) != "3" {
		t.Error(l.count(t), l.keptRows(t))
	}
	if l.add(t, keyed(7, 3, 3)); l.keptRows(t) != "2" {
		t.Error("what is settled is kept:", l.keptRows(t))
	}
	l.clock.Advance(once.Keep + 2*sweepEvery)
	if l.add(t, keyed(9, 1, 1)); l.keptRows(t) != "1" {
		t.Error("what is old is kept:", l.keptRows(t))
	}
	for n := uint64(2); n <= once.MostOpen; n++ {
		l.add(t, keyed(9, n, 1))
	}
	before := l.count(t)
	if _, err := l.try(keyed(9, once.MostOpen+1, 1), "update c set n = n + 1"); service.CodeOf(err) != service.Busy || l.count(t) != before {
		t.Error(err)
	}
	_ = l.Close()
}

// TestGuestsDoNotReachKeys: no statement of a guest reads the table of keys, changes it, or takes its name.
func TestGuestsDoNotReachKeys(t *testing.T) {
	l := openLedger(t, filepath.Join(t.TempDir(), "a.db"))
	defer l.Close()
	statements := []string{
		"select * from NAME", "select kept from NAME", "delete from NAME", "insert into NAME values(1, 1, x'', 1)", "update NAME set at = 1",
		"drop table NAME", "alter table NAME rename to x", "alter table NAME add column y", "create index i on NAME(at)",
		"create trigger r after insert on NAME begin delete from c; end",
		"pragma table_info(NAME)", "create table NAME(a)", "create table if not exists NAME(a)", "create view NAME as select 1",
		"select * from \"Wasmactors_Effects\"", "with x as (select * from main.NAME) select * from x", "create table k(a, b, foreign key(a, b) references NAME(life, number)); ",
		"SELECT kept FROM NAME WHERE life = ? AND number = ?", "DELETE FROM NAME WHERE at < ?", "COMMIT", "BEGIN IMMEDIATE", "ROLLBACK", keptSchema,
	}
	for round := range 2 {
		for _, s := range statements {
			s = strings.ReplaceAll(s, "NAME", KeptTable)
			if strings.HasPrefix(s, "create table k") {
				if _, err := l.try(nil, s); err == nil { // it may refer to what it cannot read
					if _, err = l.try(nil, "insert into k values(7, 1)"); err == nil && round == 1 {
						t.Error("a row refers to a key")
					}
					_, _ = l.try(nil, "drop table k")
				}
				continue
			}
			if _, err := l.try(nil, s); err == nil {
				t.Errorf("round %d: %s", round, s)
			}
		}
		l.add(t, keyed(7, uint64(round)+1, 1))
	}
	if _, err := l.try(nil, "create trigger s after update on c begin delete from "+KeptTable+"; end"); err == nil { // it is compiled when it is used
		if _, err := l.try(nil, "update c set n = 50"); err == nil {
			t.Error("a trigger removes keys")
		}
		if _, err := l.try(nil, "drop trigger s"); err != nil {
			t.Error(err)
		}
	}
	if l.keptRows(t) != "2" || l.count(t) != 2 {
		t.Error(l.keptRows(t), l.count(t))
	}
	if _, err := l.try(nil, "analyze"); err != nil {
		t.Error(err)
	}
	if _, err := l.try(nil, "update c set n = 100", "COMMIT", "nonsense"); err == nil || l.count(t) != 2 {
		t.Errorf("a transaction is there by half: %v, %d", err, l.count(t))
	}
}

// TestATableOfTheSameName: a table that somebody else has made is not used.
func TestATableOfTheSameName(t *testing.T) {
	l := openLedger(t, filepath.Join(t.TempDir(), "a.db"))
	defer l.Close()
	if err := l.Do(context.Background(), Scope{Access: Write}, func(tx Tx) error {
		return tx.(*connection).each("create table "+strings.ToUpper(KeptTable)+"(life, number, kept, at)", nil)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.try(keyed(7, 1, 1), "update c set n = n + 1"); service.CodeOf(err) != service.Unavailable || l.count(t) != 0 {
		t.Error(err, l.count(t))
	}
	if _, err := l.try(nil, "update c set n = n + 1"); err != nil {
		t.Error(err)
	}
}

// TestEveryCrashOfATransaction: the process is killed before each write of the log, and the transaction sent again. It has one effect. With
// keys that are written in a transaction of their own it has two.
func TestEveryCrashOfATransaction(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		dir := t.TempDir()
		l := openLedger(t, filepath.Join(dir, "a.db"))
		x := l.Database.(*sqlite)
		type left struct {
			dir    string
			number uint64
		}
		var all []left
		number := uint64(0)
		kill := func() {
			to := t.TempDir()
			for _, name := range []string{"a.db", "a.db-wal"} {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err == nil {
					err = os.WriteFile(filepath.Join(to, name), b, 0o600)
				}
				if err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
			all = append(all, left{to, number})
		}
		add := func(l *ledger, r *once.Request) {
			if !mutant {
				l.add(t, r)
				return
			}
			var answer []byte
			_ = l.Do(context.Background(), Scope{Access: Write}, func(tx Tx) (err error) {
				answer, err = tx.(keeper).answered(r)
				return err
			})
			if answer == nil {
				l.add(t, nil)
				_ = l.Do(context.Background(), Scope{Access: Write}, func(tx Tx) error { return tx.(keeper).note(r, l.now(), []byte{1}) })
			}
		}
		x.fence.step = kill
		for number = 1; number <= 3; number++ {
			add(l, keyed(7, number, number))
			kill() // before the answer is there
		}
		x.fence.step = nil
		_ = l.Close()
		wrong := 0
		for i, at := range all {
			y := openLedger(t, filepath.Join(at.dir, "a.db"))
			if add(y, keyed(7, at.number, at.number)); y.count(t) != int64(at.number) {
				if wrong++; !mutant {
					t.Errorf("crash %d, of transaction %d: %d", i, at.number, y.count(t))
				}
			}
			_ = y.Close()
		}
		if t.Logf("%d crashes, %d wrong (apart: %v)", len(all), wrong, mutant); len(all) < 9 || mutant && wrong == 0 {
			t.Error("too little has happened")
		}
	}
}
