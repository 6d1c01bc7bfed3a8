package sql

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A link that somebody has put where a database has its files leads nowhere: what it names stays as it is, whether the database is new or was
// there before.
func TestLinksAmongFiles(t *testing.T) {
	const had = "what the user had"
	for _, suffix := range []string{"", "-wal", "-journal", "-shm"} {
		for _, made := range []bool{false, true} {
			dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "file")
			file := filepath.Join(dir, "app.db")
			write := func() error {
				s := testSource(t)
				s.File = file
				d, err := SQLite.Open(t.Context(), s)
				if err != nil {
					return err
				}
				_, err = do(d, Write, "create table if not exists t (x)")
				if err == nil {
					_, err = do(d, Write, "insert into t values (1)")
				}
				return errors.Join(err, d.Close())
			}
			if made && suffix != "" {
				if err := write(); err != nil {
					t.Fatal(err)
				}
				_ = os.Remove(file + suffix)
			}
			if err := os.WriteFile(outside, []byte(had), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, file+suffix); err != nil {
				t.Skip(err)
			}
			err := write()
			got, _ := os.ReadFile(outside)
			if string(got) != had {
				t.Errorf("%q, made before: %v: the file outside has %.40q (%v)", suffix, made, got, err)
			}
		}
	}
}
