package sql

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// crashEnv names the database of a child that is killed.
const crashEnv = "WASMACTORS_SQL_CRASH"

// crashChild writes until it is killed: transactions of two rows, of which it says so once they
// are acknowledged.
func crashChild() {
	d := DatabaseSettings{File: os.Getenv(crashEnv)}
	db, err := SQLite.Open(context.Background(), d.source("crash", &service.Env{Log: discard}))
	if err == nil {
		_, err = do(db, Write, "create table if not exists t(id integer primary key, n integer, half integer, filler blob)")
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	work := make(chan int64)
	go func() {
		base := time.Now().UnixNano()
		for i := int64(0); ; i++ {
			work <- base + i
		}
	}()
	for range 4 {
		go func() {
			for n := range work {
				ctx := context.Background()
				err := db.Do(ctx, Scope{Access: Write}, func(tx Tx) error {
					for half := range int64(2) {
						_, err := tx.Run(ctx, "insert into t(n, half, filler) values(?, ?, randomblob(?))",
							[]Param{{Value: integer(n)}, {Value: integer(half)}, {Value: integer(n % 9000)}},
							func([]string) error { return nil }, func([]Value) error { return nil })
						if err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				fmt.Println(n)
			}
		}()
	}
	select {}
}

// TestKill kills a process that writes, with SIGKILL, again and again on the same database: what it
// has acknowledged is there, whole, and the database is sound.
func TestKill(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	if v, err := strconv.Atoi(os.Getenv("WASMACTORS_LONG")); err == nil && v > 0 {
		rounds = v
	}
	file := filepath.Join(t.TempDir(), "crash.db")
	acknowledged := map[int64]bool{}
	began := time.Now()
	for round := range rounds {
		killed(t, file, acknowledged, time.Duration(20+rand.IntN(150))*time.Millisecond)
		check(t, file, acknowledged)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds in %v, %d transactions acknowledged", rounds, time.Since(began), len(acknowledged))
}

func killed(t *testing.T, file string, acknowledged map[int64]bool, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break // a line without its end was not acknowledged
		}
		line = strings.TrimSpace(line)
		if line == "ready" {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			continue
		}
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Errorf("the child: %s", line)
			continue
		}
		acknowledged[n] = true
	}
	_ = cmd.Wait()
}

func check(t *testing.T, file string, acknowledged map[int64]bool) {
	t.Helper()
	d := DatabaseSettings{File: file}
	db, err := SQLite.Open(context.Background(), d.source("crash", &service.Env{Log: discard}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	x := db.(*sqlite)
	c, err := x.write.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	err = c.Raw(func(conn any) error {
		x := conn.(*connection)
		x.own = true
		defer func() { x.own = false }()
		got, err := x.ask("PRAGMA integrity_check")
		if got != "ok" {
			t.Errorf("integrity: %q, %v", got, err)
		}
		return nil
	})
	_ = c.Close()
	if err != nil {
		t.Error(err)
	}
	got, err := do(db, Read, "select n, count(*), sum(half) from t group by n")
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]bool{}
	for _, row := range got.rows {
		if there[row[0].Int] = true; row[1].Int != 2 || row[2].Int != 1 {
			t.Errorf("transaction %d is there by half", row[0].Int)
		}
	}
	for n := range acknowledged {
		if !there[n] {
			t.Errorf("transaction %d was acknowledged and is not there", n)
		}
	}
}
