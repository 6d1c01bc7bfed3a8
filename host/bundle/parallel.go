package bundle

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"sync"

	"github.com/wasmactors/wasmactors/internal/regular"
	engine "github.com/wasmactors/wasmactors/runtime"
)

// inOrder does n pieces of work, at most `most` at a time (0: GOMAXPROCS). It returns the error of
// the failing piece with the lowest number, whichever fails first in time: a failure cancels the
// pieces of higher numbers only.
func inOrder(ctx context.Context, most, n int, work func(ctx context.Context, i int) error) error {
	if most <= 0 {
		most = runtime.GOMAXPROCS(0)
	}
	var mu sync.Mutex
	next, failed := 0, n // failed: the first piece that has
	errs := make([]error, n)
	cancels := make([]context.CancelFunc, n)
	take := func() (context.Context, int) {
		mu.Lock()
		defer mu.Unlock()
		if next >= failed {
			return nil, n
		}
		i := next
		next++
		var piece context.Context
		piece, cancels[i] = context.WithCancel(ctx)
		return piece, i
	}
	end := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		cancels[i]()
		if errs[i] = err; err != nil && i < failed {
			failed = i
			for _, cancel := range cancels[i+1 : next] {
				cancel()
			}
		}
	}
	var wg sync.WaitGroup
	for range min(most, n) {
		wg.Go(func() {
			for piece, i := take(); i < n; piece, i = take() {
				end(i, work(piece, i))
			}
		})
	}
	wg.Wait()
	if failed < n {
		return errs[failed]
	}
	return nil
}

// readModule reads a module's file: a regular one, of no more bytes than the module
// may have.
func readModule(ctx context.Context, mod Module) ([]byte, error) {
	most := min(cmp.Or(mod.Size, uint64(engine.DefaultSizeLimit)), mostModule)
	code, err := regular.Read(ctx, mod.Wasm, int64(most))
	if !errors.Is(err, regular.ErrSize) {
		return code, err
	}
	limit := &engine.LimitError{What: "takes", Key: "size", Need: most + 1, Limit: most, Unit: "bytes"}
	if info, serr := os.Stat(mod.Wasm); serr == nil {
		limit.Need = max(limit.Need, uint64(info.Size()))
	}
	return nil, &engine.LoadError{Name: mod.Name, Reason: limit.Error(), Err: limit}
}
