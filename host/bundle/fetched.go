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

// Bounds of code of other nodes that is kept. What children run is never dropped, so each node has a share: the code of which it was the
// first to give it.
const (
	mostFetched       = 2 * shareFetched      // modules
	mostFetchedBytes  = 2 * shareFetchedBytes // of their code
	shareFetched      = 16
	shareFetchedBytes = 64 << 20
)

// fetchedCodes are modules of other nodes that no module here has, the one that was used last at the end.
type fetchedCodes struct {
	mu    sync.Mutex
	all   []*fetchedCode
	takes bool // the manifest lets code come from other nodes
}

// take says that code may come.
func (c *fetchedCodes) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takes = true
}

type fetchedCode struct {
	node   uint16 // that has given it
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
	most := int64(shareFetchedBytes)
	if n := spec.Size; n > 0 && n < shareFetchedBytes {
		most = int64(n)
	}
	return most
}

// Load implements remote.Code. The code gets the limits of a module of the manifest, and neither its folders nor its variables.
func (f *fetcher) Load(ctx context.Context, node uint16, digest []byte, as string, code []byte) error {
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
	x := &fetchedCode{node: node, as: as, digest: string(digest), module: host.NewModule(image), loaded: &loaded{spec: spec, image: image, hash: hashOf(code)}, bytes: int64(len(code))}
	if err := c.put(x, func(l *loaded) { f.b.codes.retire(l.spec.Name, l) }); err != nil {
		image.Retire()
		return err
	}
	f.b.log.Info("code of another node is used", "node", node, "as", as, "hash", hex.EncodeToString(digest), "bytes", len(code))
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
	if n, bytes := c.make(x, shareFetched, shareFetchedBytes, func(y *fetchedCode) bool { return y.node == x.node }, drop); n >= shareFetched || bytes+x.bytes > shareFetchedBytes {
		return fmt.Errorf("%w: children run %d modules of node %d, of %d bytes, and this one has %d: %d modules and %d bytes are a node's share", host.ErrLimit, n, x.node, bytes, x.bytes, shareFetched, shareFetchedBytes)
	}
	if n, bytes := c.make(x, mostFetched, mostFetchedBytes, func(*fetchedCode) bool { return true }, drop); n >= mostFetched || bytes+x.bytes > mostFetchedBytes {
		return fmt.Errorf("%w: children run %d modules of other nodes, of %d bytes: %d and %d are the most", host.ErrLimit, n, bytes, mostFetched, mostFetchedBytes)
	}
	c.all = append(c.all, x)
	return nil
}

// make makes room for code among the code that counts: what no child runs goes, first what was not used for longest. It returns how many
// modules are left, and their bytes.
func (c *fetchedCodes) make(x *fetchedCode, most int, mostBytes int64, counts func(*fetchedCode) bool, drop func(*loaded)) (n int, bytes int64) {
	for _, y := range c.all {
		if counts(y) {
			n, bytes = n+1, bytes+y.bytes
		}
	}
	for n >= most || bytes+x.bytes > mostBytes {
		i := slices.IndexFunc(c.all, func(y *fetchedCode) bool { return y.pins == 0 && counts(y) })
		if i < 0 {
			break
		}
		y := c.all[i]
		c.all = slices.Delete(c.all, i, i+1)
		n, bytes = n-1, bytes-y.bytes
		drop(y.loaded)
	}
	return n, bytes
}

// FetchedCode is a module of another node that is kept here for its children.
type FetchedCode struct {
	Node     uint16 // that gave it first
	As       string // the module of the manifest whose limits it has
	Digest   string // SHA-256, in hex
	Bytes    int64
	Children int // that run it; while there are some it is not dropped
}

// FetchedBounds bound what is kept: in all, and the share of each node.
type FetchedBounds struct {
	Modules, ShareModules int
	Bytes, ShareBytes     int64
}

// Fetched is the code of other nodes that is kept now, the one that was used last at the end, and its bounds. ok says that the manifest lets
// code come from other nodes (cluster.accept.fetch). Any goroutine may call it.
func (b *Bundle) Fetched() (all []FetchedCode, bounds FetchedBounds, ok bool) {
	bounds = FetchedBounds{mostFetched, shareFetched, mostFetchedBytes, shareFetchedBytes}
	c := &b.fetched
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.all {
		all = append(all, FetchedCode{x.node, x.as, hex.EncodeToString([]byte(x.digest)), x.bytes, x.pins})
	}
	return all, bounds, c.takes
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
