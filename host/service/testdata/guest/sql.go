package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/sql"
)

func init() {
	actor.Register("sql-bank", func() actor.Actor { return bank{} })
}

// bank keeps accounts: [what, a, b, n].
//
//	open, name, "", n:      an account with n
//	move, from, to, n:      n from one account to another, all or nothing
//	balance, name, "", 0:   what it has
//	sum, "", "", n:         [rows, sum] of all accounts, read n rows at a time
//	add, "", "", n:         n rows, an insert each, one after the other
//	read, name, "", n:      n times the balance, one after the other
type bank struct{}

const sqlTimeout = 20 * time.Second

func (bank) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Array() != 4 {
		return abi.ErrArity
	}
	what, a, b, n := r.Text(), r.Text(), r.Text(), r.Int()
	to, correlation := msg.Sender(), msg.Correlation()
	failed := func(ctx *actor.Context, err error) error { return ctx.AnswerError(to, correlation, err.Error()) }
	done := func(ctx *actor.Context, v int64) error {
		return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) { w.Int(v) }))
	}
	insert := sql.Do("insert into account(name, has) values(?, ?)", sql.Text(a), sql.Int(n))
	switch what {
	case "open":
		sql.Exec(ctx, "main", insert, sqlTimeout, func(ctx *actor.Context, r *sql.Result, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			return done(ctx, r.LastID)
		})
	case "move":
		sql.Tx(ctx, "main", sql.Write, []sql.Statement{
			sql.Do("update account set has = has - ? where name = ? and has >= ?", sql.Int(n), sql.Text(a), sql.Int(n)).Affects(1),
			sql.Do("update account set has = has + ? where name = ?", sql.Int(n), sql.Text(b)).Affects(1),
			sql.Do("select has from account where name = ?", sql.Text(a)),
		}, sqlTimeout, func(ctx *actor.Context, results []sql.Result, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			left := int64(-1)
			if err := results[2].Each(func(row *sql.Row) { left = row.Int() }); err != nil {
				return failed(ctx, err)
			}
			return done(ctx, left)
		})
	case "balance", "read":
		var again sql.Then
		query := sql.Statement{SQL: "select has from account where name = :name", Params: []sql.Value{sql.Text(a)}, Names: []string{"name"}}
		again = func(ctx *actor.Context, r *sql.Result, err error) error {
			if err == nil && r.Len == 0 {
				err = service.ErrNotFound
			}
			if err != nil {
				return failed(ctx, err)
			}
			has := int64(0)
			if err := r.Each(func(row *sql.Row) { has = row.Int() }); err != nil {
				return failed(ctx, err)
			}
			if n--; n > 0 {
				sql.Query(ctx, "main", query, sqlTimeout, again)
				return nil
			}
			return done(ctx, has)
		}
		sql.Query(ctx, "main", query, sqlTimeout, again)
	case "add":
		var again sql.Then
		again = func(ctx *actor.Context, r *sql.Result, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			if n--; n <= 0 {
				return done(ctx, r.LastID)
			}
			sql.Exec(ctx, "main", sql.Do("insert into account(has) values(1)"), sqlTimeout, again)
			return nil
		}
		sql.Exec(ctx, "main", sql.Do("insert into account(has) values(1)"), sqlTimeout, again)
	case "sum":
		rows, sum := int64(0), int64(0)
		var page sql.Then
		page = func(ctx *actor.Context, r *sql.Result, err error) error {
			if err == nil {
				err = r.Each(func(row *sql.Row) { rows++; sum += row.Int() })
			}
			if err != nil {
				return failed(ctx, err)
			}
			if r.End == sql.EndPage {
				sql.Next(ctx, r.Cursor, int(n), sqlTimeout, page)
				return nil
			}
			return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) {
				w.Array(2)
				w.Int(rows)
				w.Int(sum)
			}))
		}
		sql.Query(ctx, "main", sql.Statement{SQL: "select has from account order by id", Rows: int(n), Rest: sql.Page}, sqlTimeout, page)
	default:
		return actor.ErrUnhandled
	}
	return nil
}
