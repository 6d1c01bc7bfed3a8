//go:build unix

package httpclient_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// A file of roots that never ends, or nobody writes to, is refused at once.
func TestOddRoots(t *testing.T) {
	dir := t.TempDir()
	pipe, huge := filepath.Join(dir, "pipe"), filepath.Join(dir, "huge")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40)); err != nil {
		t.Skip(err)
	}
	for file, want := range map[string]error{pipe: regular.ErrKind, "/dev/zero": regular.ErrKind, huge: regular.ErrSize} {
		sys, err := host.New(host.NewConfig("roots"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := httpclient.Service.Start(sys, nil, &httpclient.Settings{Roots: file}); !errors.Is(err, want) {
			t.Errorf("%s: %v", file, err)
		}
		_ = sys.Close(context.Background())
	}
}
