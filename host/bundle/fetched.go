package bundle

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/remote"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Bounds of code of other nodes that is kept. What children run is never dropped.
const (
	mostFetched      = 16       // modules
	mostFetchedBytes = 64 << 20 // of their code
)

// fetchedCodes are modules of other nodes that no module here has, the one that was used last at the end.
type fetchedCodes struct {
	mu  sync.Mutex
	all []*fetchedCode
}

type fetchedCode struct {
	as     string // the module of the manifest whose settings it has
	digest string
	module *host.Module
	loaded *loaded
	bytes  int64
	pins   int
}

// of finds code for a child of a type that has the settings of now; nil: it is not here. Any goroutine may call it.
func (c *fetchedCodes) of(codes *codes, digest []byte, module, typ string, types []string) *fetchedCode {
	as := settingsFor(module, typ, types)
	spec, ok := codes.foreign(as)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(digest, as, spec)
}

// find finds code with these settings, with the lock, and says that it is used.
func (c *fetchedCodes) find(digest []byte, as string, spec Module) *fetchedCode {
	i := slices.IndexFunc(c.all, func(x *fetchedCode) bool {
		return x.as == as && x.digest == string(digest) && sameModule(x.loaded.spec, spec)
	})
	if i < 0 {
		return nil
	}
	x := c.all[i]
	c.all = append(slices.Delete(c.all, i, i+1), x)
	return x
}

// settingsFor is the module whose settings code of another node gets for a type: the one of the name that it has there, if it accepts the
// type, else the first one that does; "": none does.
func settingsFor(module, typ string, types []string) (as string) {
	for _, x := range types {
		own, t, _ := strings.Cut(x, "/")
		if !glob.Match(t, typ) {
			continue
		}
		if own == module {
			return own
		}
		if as == "" {
			as = own
		}
	}
	return as
}

// fetcher implements remote.Code for one system.
type fetcher struct {
	b     *Bundle
	types []string // cluster.accept.fetch
}

// May implements remote.Code.
func (f *fetcher) May(module, typ string) (as string, most int64, err error) {
	if as = settingsFor(module, typ, f.types); as == "" {
		return "", 0, fmt.Errorf("%w: %w, and cluster.accept.fetch has not the type %.80s", host.ErrDenied, remote.ErrLacks, typ)
	}
	return as, f.most(as), nil
}

func (f *fetcher) most(as string) int64 {
	spec, _ := f.b.codes.foreign(as)
	most := int64(mostFetchedBytes)
	if n := spec.Size; n > 0 && n < mostFetchedBytes {
		most = int64(n)
	}
	return most
}

// Load implements remote.Code. The code gets the limits of a module of the manifest, and neither its folders nor its variables.
func (f *fetcher) Load(ctx context.Context, digest []byte, as string, code []byte) error {
	c := &f.b.fetched
	spec, ok := f.b.codes.foreign(as)
	if !ok {
		return fmt.Errorf("%w: there is no module %s any more", host.ErrBadProps, as)
	}
	c.mu.Lock()
	there := c.find(digest, as, spec) != nil
	c.mu.Unlock()
	if there {
		return nil
	}
	image, err := f.b.engine.Load(ctx, code, spec.ImageConfig())
	if err != nil {
		return err
	}
	x := &fetchedCode{as: as, digest: string(digest), module: host.NewModule(image), loaded: &loaded{spec: spec, image: image, hash: hashOf(code)}, bytes: int64(len(code))}
	if err := c.put(x, func(l *loaded) { f.b.codes.retire(l.spec.Name, l) }); err != nil {
		image.Retire()
		return err
	}
	f.b.log.Info("code of another node is used", "as", as, "hash", hex.EncodeToString(digest), "bytes", len(code))
	return nil
}

// put adds code, and drops what was not used for longest.
func (c *fetchedCodes) put(x *fetchedCode, drop func(*loaded)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find([]byte(x.digest), x.as, x.loaded.spec) != nil {
		drop(x.loaded)
		return nil
	}
	bytes := x.bytes
	for _, y := range c.all {
		bytes += y.bytes
	}
	for len(c.all) >= mostFetched || bytes > mostFetchedBytes {
		i := slices.IndexFunc(c.all, func(y *fetchedCode) bool { return y.pins == 0 })
		if i < 0 {
			return fmt.Errorf("%w: children run %d modules of other nodes, of %d bytes: %d and %d are the most", host.ErrLimit, len(c.all), bytes-x.bytes, mostFetched, mostFetchedBytes)
		}
		y := c.all[i]
		c.all = slices.Delete(c.all, i, i+1)
		bytes -= y.bytes
		drop(y.loaded)
	}
	c.all = append(c.all, x)
	return nil
}

// Pin implements remote.Code.
func (f *fetcher) Pin(digest []byte, module, typ string) (release func(), err error) {
	c := &f.b.fetched
	x, why := (*fetchedCode)(nil), error(nil)
	as := settingsFor(module, typ, f.types)
	spec, ok := f.b.codes.foreign(as)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		x = c.find(digest, as, spec)
	}
	if x == nil {
		if !f.b.codes.has(digest) {
			why = fmt.Errorf("%w: it was dropped just now: try again", remote.ErrLacks)
		}
		return func() {}, why
	}
	x.pins++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		x.pins--
	}, nil
}
