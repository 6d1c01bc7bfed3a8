package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // as some driver of database/sql

	"github.com/wasmactors/wasmactors/host/service"
)

// TestStandard runs statements by way of database/sql alone.
func TestStandard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	open := func(mode string) func(Source) (*stdsql.DB, error) {
		return func(s Source) (*stdsql.DB, error) { return stdsql.Open("sqlite3", "file:"+s.DSN+mode) }
	}
	d := Standard{Open: open(""), ReadOnly: open("?mode=ro"), Translate: func(err error) error {
		if strings.Contains(err.Error(), "UNIQUE") {
			return service.Errorf(service.Exists, "it is there")
		}
		return service.Errorf(service.Failed, "%v", err)
	}}.Driver()
	s := testSource(t)
	s.DSN = file
	{
		db, err := open("")(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("create table t(a unique, at timestamp)"); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
	}
	db, err := d.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	at := time.Unix(5, 6).UTC()
	if out := must(t, db, "insert into t values(?, ?)", integer(7), Value{Kind: Time, Time: at}); out.Affected != 1 || out.LastID != 1 {
		t.Errorf("%+v", out)
	}
	if _, err := do(db, Write, "insert into t values(7, null)"); service.CodeOf(err) != service.Exists {
		t.Error(err)
	}
	if _, err := do(db, Read, "insert into t values(8, null)"); service.CodeOf(err) != service.Failed {
		t.Error(err)
	}
	got, err := do(db, Read, "select a, at, 'x', 1.5, x'00', null from t")
	if err != nil {
		t.Fatal(err)
	}
	row := got.rows[0]
	if row[0].Int != 7 || !row[1].Time.Equal(at) || row[2].Text != "x" || row[3].Float != 1.5 || len(row[4].Blob) != 1 || row[5].Kind != Null {
		t.Errorf("%+v", row)
	}
	if out := must(t, db, "insert into t values(9, null) returning a"); len(out.rows) != 1 {
		t.Errorf("%+v", out)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, context.DeadlineExceeded)
	defer cancel()
	if _, err := doIn(ctx, db, Read, "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c"); service.CodeOf(err) != service.Timeout {
		t.Error(err)
	}
	for _, x := range []any{uint64(1 << 63), struct{}{}, time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := valueOf(x); service.CodeOf(err) != service.BadRequest {
			t.Error(fmt.Sprint(x), err)
		}
	}
}
