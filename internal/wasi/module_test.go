package wasi

import (
	"context"
	"errors"
	"slices"
	"sort"
	"testing"

	"github.com/tetratelabs/wazero"
	reference "github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// TestAllOfPreview1 compares names and types with wazero's own module.
func TestAllOfPreview1(t *testing.T) {
	ctx := context.Background()
	theirs, ours := wazero.NewRuntime(ctx), wazero.NewRuntime(ctx)
	defer theirs.Close(ctx)
	defer ours.Close(ctx)
	if _, err := reference.Instantiate(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := Instantiate(ctx, ours); err != nil {
		t.Fatal(err)
	}
	got := ours.Module(Module).ExportedFunctionDefinitions()
	definitions := theirs.Module(Module).ExportedFunctionDefinitions()
	for name, def := range definitions {
		mine, ok := got[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if !slices.Equal(mine.ParamTypes(), def.ParamTypes()) || !slices.Equal(mine.ResultTypes(), def.ResultTypes()) {
			t.Errorf("%s: %v -> %v, want %v -> %v", name, mine.ParamTypes(), mine.ResultTypes(), def.ParamTypes(), def.ResultTypes())
		}
	}
	if len(got) != len(definitions) || len(Functions()) != len(definitions) {
		t.Errorf("%d functions, want %d", len(got), len(definitions))
	}
	if !sort.SliceIsSorted(functions, func(i, j int) bool { return functions[i].name < functions[j].name }) {
		t.Error("not in alphabetical order")
	}
}

func TestWithoutHost(t *testing.T) {
	mod := onePage(t)
	stack := make([]uint64, 4)
	byName(t, "fd_write").goFunc()(context.Background(), mod, stack)
	if errno(stack[0]) != errnoNosys {
		t.Errorf("errno %d", stack[0])
	}
	defer func() {
		var exit *ExitError
		if err, ok := recover().(error); !ok || !errors.As(err, &exit) || exit.Code != 3 || exit.Error() != "exit code 3" {
			t.Errorf("exit without host: %v", err)
		}
	}()
	byName(t, "proc_exit").goFunc()(context.Background(), mod, []uint64{3})
}

func TestHostInContext(t *testing.T) {
	h := &fakeHost{Context: context.Background()}
	if FromContext(h) != h {
		t.Error("a Carrier")
	}
	ctx, cancel := context.WithCancel(WithHost(context.Background(), h))
	defer cancel()
	if FromContext(ctx) != h {
		t.Error("WithHost")
	}
	if FromContext(context.Background()) != nil {
		t.Error("nothing")
	}
}

func TestProcExit(t *testing.T) {
	g := newGuest(t)
	defer func() {
		if e, ok := recover().(*ExitError); !ok || e.Code != 42 {
			t.Errorf("%v", e)
		}
	}()
	g.call("proc_exit", 42|7<<32)
}

// TestMeaningless pins the answers of what has no meaning for an actor.
func TestMeaningless(t *testing.T) {
	g := newGuest(t)
	for name, want := range map[string]errno{
		"sock_accept": errnoNotsup, "sock_recv": errnoNotsup, "sock_send": errnoNotsup, "sock_shutdown": errnoNotsup,
		"proc_raise": errnoNosys, "path_symlink": errnoNotsup, "fd_renumber": errnoNotsup,
		"fd_allocate": errnoNotsup, "fd_fdstat_set_rights": errnoNotsup, "fd_filestat_set_times": errnoNotsup,
		"path_link": errnoNotsup, "path_filestat_set_times": errnoNotsup, "sched_yield": errnoSuccess,
	} {
		g.want(want, name, make([]uint64, len(byName(t, name).params))...)
	}
	g.want(errnoBadf, "fd_allocate", 9, 0, 0)
}
