package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
	"github.com/wasmactors/wasmactors/host/service/stream"
)

// Settings are the manifest's services.blob.
type Settings struct {
	Folder string `manifest:"folder" doc:"where the objects are, made if it is not there; relative to the manifest. Default: a folder in the state of the bundle" reach:"write"`
}

// Grant is the manifest's capabilities.blob of an actor.
type Grant struct {
	Namespace string        `manifest:"namespace,required" doc:"whose objects; grants with the same one share them" pattern:"^[a-z][a-z0-9_-]{0,31}$" what:"a namespace: small letters, digits, - and _" reach:"none"`
	Access    string        `manifest:"access" doc:"ro reads, rw writes as well; default: ro" enum:"ro,rw"`
	Quota     service.Size  `manifest:"quota" doc:"bytes of the namespace up to which this grant writes; default: 1GiB" min:"1"`
	Objects   int           `manifest:"objects" doc:"objects of the namespace up to which this grant writes; default: 10000" min:"1" max:"1000000"`
	Object    service.Size  `manifest:"object" doc:"bytes of an object; default: all of quota" min:"1"`
	Answer    service.Size  `manifest:"answer" doc:"bytes up to which an object, or a list, comes in the answer itself; default: 48KiB, as a guest of our SDK takes messages of 64KiB" min:"4096" max:"4194304"`
	Streams   int           `manifest:"streams" doc:"objects that are written or read in parts at a time; default: 8" min:"1" max:"1000"`
	Idle      time.Duration `manifest:"idle" doc:"how long a stream waits for the guest; default: 1m"`
	Life      time.Duration `manifest:"life" doc:"how long an object may take to be written or read in parts; default: 1h"`
}

// Defaults of grants.
const (
	DefaultQuota   = 1 << 30
	DefaultObjects = 10_000
	DefaultAnswer  = 48 << 10
	DefaultStreams = 8
	DefaultIdle    = time.Minute
	DefaultLife    = time.Hour
	window         = 256 << 10 // of a stream, in bytes
)

// Service is the service blob.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name: "blob", Doc: "large objects in a folder",
	Bounds: service.Bounds{AtOnce: 32, Bytes: 16 << 20, Timeout: 30 * time.Second},
	Open:   func(env *service.Env, s *Settings) (service.Provider[Grant], error) { return open(env, s) },
})

func open(env *service.Env, s *Settings) (*provider, error) {
	folder := s.Folder
	switch {
	case folder == "":
		dir, err := env.StateDir()
		if err != nil {
			return nil, fmt.Errorf("without folder the objects are kept in the state of the bundle: %w", err)
		}
		folder = filepath.Join(dir, "objects")
	case !filepath.IsAbs(folder):
		folder = filepath.Join(env.Base, folder)
	}
	st, err := openStore(folder, env.Rand, env.Clock.Now, env.Log.Warn)
	if err != nil {
		return nil, err
	}
	p := &provider{env: env, store: st, open: map[uint64]int{}}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	return p, nil
}

// provider is the service.
type provider struct {
	env   *service.Env
	store *store
	ctx   context.Context // of streams
	stop  context.CancelCauseFunc
	wg    sync.WaitGroup

	mu   sync.Mutex
	open map[uint64]int // streams by grant
}

// Close implements [service.Provider].
func (p *provider) Close(context.Context) error {
	p.stop(service.Errorf(service.Unavailable, "blob is closing"))
	executor.Join(p.env.Clock, &p.wg)
	return p.store.close()
}

// Serve implements [service.Provider].
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	serve := map[string]func(context.Context, *service.Request[Grant], *space) (any, error){
		"put": p.put, "get": p.get, "stat": p.stat, "delete": p.remove, "list": p.list, "usage": p.usage,
	}[r.Op]
	if serve == nil {
		return nil, r.Unknown()
	}
	if (r.Op == "put" || r.Op == "delete") && r.Grant.Access != "rw" {
		return nil, service.Errorf(service.ReadOnly, "the grant is ro; access: rw would allow it")
	}
	x, err := p.store.space(r.Grant.Namespace)
	if err != nil {
		return nil, x.failed(err)
	}
	return serve(ctx, r, x)
}

func (g *Grant) limits() limits {
	l := limits{bytes: int64(or(g.Quota, DefaultQuota)), objects: or(g.Objects, DefaultObjects)}
	l.object = min(int64(or(g.Object, service.Size(l.bytes))), mostSize)
	return l
}

// named is the arguments of the op stat.
type named struct {
	Name string `cbor:"name"`
}

// putArgs are the arguments of put. Without data the object comes in parts.
type putArgs struct {
	Name   string `cbor:"name"`
	Type   string `cbor:"type"`
	Data   []byte `cbor:"data"`
	If     string `cbor:"if"`     // absent, or ""
	Match  []byte `cbor:"match"`  // the hash of the present object
	SHA256 []byte `cbor:"sha256"` // the hash that it must have
}

func (a *putArgs) check() error {
	err := CheckName(a.Name)
	switch {
	case err != nil:
	case len(a.Type) > MaxType:
		err = fmt.Errorf("a type of %d bytes, at most %d", len(a.Type), MaxType)
	case a.If != "" && a.If != "absent":
		err = errors.New(`if must be "absent", or left out`)
	case a.If != "" && a.Match != nil:
		err = errors.New("if and match exclude each other")
	case a.Match != nil && len(a.Match) != sha256.Size, a.SHA256 != nil && len(a.SHA256) != sha256.Size:
		err = errors.New("match and sha256 must have 32 bytes")
	}
	return bad(err)
}

func bad(err error) error {
	if err == nil {
		return nil
	}
	return service.Errorf(service.BadRequest, "%v", err)
}

func (p *provider) put(ctx context.Context, r *service.Request[Grant], x *space) (any, error) {
	var a putArgs
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Data == nil {
		return p.putStream(ctx, r, x, &a)
	}
	key := once.Of(r.Sender, r.Effect)
	if done := x.doneBefore(key); done != nil {
		return done.answer(), nil
	}
	w, err := x.create(a.Name, a.Type, r.Grant.limits(), condition{a.If == "absent", a.Match}, a.SHA256)
	if err != nil {
		return nil, err
	}
	defer w.abandon()
	w.once = key
	if _, err := w.Write(a.Data); err != nil {
		return nil, err
	}
	o, err := w.publish()
	if err != nil {
		return nil, err
	}
	return answer(&o, nil, host.Ref{}), nil
}

// stream reserves one of a grant's streams, and the bytes of its window.
func (p *provider) stream(r *service.Request[Grant]) (params stream.Params, ctx context.Context, leave func(), err error) {
	release, err := r.Hold(window)
	if err != nil {
		return params, nil, nil, err
	}
	id, most := r.GrantID(), or(r.Grant.Streams, DefaultStreams)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id] >= most {
		release()
		return params, nil, nil, service.Errorf(service.Busy, "%d objects are being written or read in parts, which is the limit; streams of the grant raises it", most)
	}
	p.open[id]++
	p.wg.Add(1)
	ctx, cancel := context.WithCancelCause(p.ctx)
	life := p.env.Clock.AfterFunc(or(r.Grant.Life, DefaultLife), func() {
		cancel(service.Errorf(service.Timeout, "the object took too long; life of the grant raises it"))
	})
	leave = func() {
		life.Stop()
		cancel(nil)
		release()
		p.mu.Lock()
		if p.open[id]--; p.open[id] == 0 {
			delete(p.open, id)
		}
		p.mu.Unlock()
		p.wg.Done()
	}
	return stream.Params{Owner: r.Sender, Window: window, Idle: or(r.Grant.Idle, DefaultIdle), Clock: p.env.Clock}, ctx, leave, nil
}

// putStream answers with the sink of an object.
func (p *provider) putStream(_ context.Context, r *service.Request[Grant], x *space, a *putArgs) (any, error) {
	params, ctx, leave, err := p.stream(r)
	if err != nil {
		return nil, err
	}
	w, err := x.create(a.Name, a.Type, r.Grant.limits(), condition{a.If == "absent", a.Match}, a.SHA256)
	if err != nil {
		leave()
		return nil, err
	}
	props, sink := stream.NewSink(params)
	ref, err := r.Spawn(props)
	if err != nil {
		sink.Abandon()
		w.abandon()
		leave()
		return nil, err
	}
	p.env.Go(func() {
		defer leave()
		defer w.abandon()
		o, err := fill(ctx, w, sink)
		if err != nil {
			_ = sink.Finish(nil, err)
			return
		}
		_ = sink.Finish(answer(&o, nil, host.Ref{}), nil)
	})
	out := abi.NewWriter(nil)
	out.Map(1)
	out.Text("sink")
	out.Uint(uint64(ref.UID()))
	return host.Raw(out.Bytes()), nil
}

// fill writes the parts as they come, and publishes the object when the guest ends the stream.
func fill(ctx context.Context, w *writer, sink *stream.Sink) (Object, error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := sink.ReadContext(ctx, buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return Object{}, err
			}
		}
		if err == io.EOF {
			return w.publish()
		}
		if err != nil {
			return Object{}, err
		}
	}
}

// getArgs are the arguments of get.
type getArgs struct {
	Name   string `cbor:"name"`
	Offset int64  `cbor:"offset"`
	Length *int64 `cbor:"length"`
	Verify bool   `cbor:"verify"` // the hash, before the first byte
}

func (p *provider) get(ctx context.Context, r *service.Request[Grant], x *space) (any, error) {
	var a getArgs
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if err := CheckName(a.Name); err != nil {
		return nil, bad(err)
	}
	if a.Offset < 0 || a.Length != nil && *a.Length < 0 {
		return nil, service.Errorf(service.BadRequest, "offset and length are 0 or more")
	}
	f, o, err := x.openObject(a.Name)
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			_ = f.Close()
		}
	}()
	if a.Verify {
		if err := verify(ctx, f, &o); err != nil {
			return nil, err
		}
	}
	from := min(a.Offset, o.Size)
	n := o.Size - from
	if a.Length != nil {
		n = min(n, *a.Length)
	}
	if n <= int64(or(r.Grant.Answer, DefaultAnswer)) {
		release, err := r.Hold(n)
		if err != nil {
			return nil, err
		}
		defer release()
		data := make([]byte, n)
		if _, err := io.ReadFull(io.NewSectionReader(f, from, n), data); err != nil {
			return nil, x.failed(err)
		}
		return answer(&o, data, host.Ref{}), nil
	}
	params, streaming, leave, err := p.stream(r)
	if err != nil {
		return nil, err
	}
	props, source := stream.NewSource(params)
	ref, err := r.Spawn(props)
	if err != nil {
		source.Abandon()
		leave()
		return nil, err
	}
	keep = true
	p.env.Go(func() {
		defer leave()
		defer func() { _ = f.Close() }()
		source.CloseWithError(send(streaming, source, io.NewSectionReader(f, from, n), x))
	})
	return answer(&o, nil, ref), nil
}

// send copies a part of a file to a guest.
func send(ctx context.Context, to *stream.Source, from io.Reader, x *space) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.WriteContext(ctx, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return x.failed(err)
		}
	}
}

func (p *provider) stat(_ context.Context, r *service.Request[Grant], x *space) (any, error) {
	var a named
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if err := CheckName(a.Name); err != nil {
		return nil, bad(err)
	}
	o, err := x.stat(a.Name)
	if err != nil {
		return nil, err
	}
	return answer(&o, nil, host.Ref{}), nil
}

func (p *provider) remove(_ context.Context, r *service.Request[Grant], x *space) (any, error) {
	var a struct {
		Name  string `cbor:"name"`
		Match []byte `cbor:"match"`
	}
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if err := CheckName(a.Name); err != nil {
		return nil, bad(err)
	}
	if a.Match != nil && len(a.Match) != sha256.Size {
		return nil, service.Errorf(service.BadRequest, "match must have 32 bytes")
	}
	existed, err := x.removeOnce(a.Name, condition{match: a.Match}, once.Of(r.Sender, r.Effect), r.Grant.limits().bytes)
	if err != nil {
		return nil, err
	}
	return map[string]bool{"existed": existed}, nil
}

func (p *provider) list(_ context.Context, r *service.Request[Grant], x *space) (any, error) {
	var a struct {
		Prefix string `cbor:"prefix"`
		After  string `cbor:"after"`
		Limit  int    `cbor:"limit"`
	}
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if a.Limit < 0 || len(a.Prefix) > MaxName || len(a.After) > MaxName {
		return nil, service.Errorf(service.BadRequest, "limit is 1 or more, prefix and after have at most %d bytes", MaxName)
	}
	most := int(or(r.Grant.Answer, DefaultAnswer))
	release, err := r.Hold(int64(most))
	if err != nil {
		return nil, err
	}
	defer release()
	body, n, last := abi.NewWriter(nil), 0, ""
	more := x.list(a.Prefix, a.After, func(o *Object) bool {
		if a.Limit > 0 && n >= a.Limit || n > 0 && body.Len()+mostAbout > most {
			return false
		}
		appendObject(body, o, nil, 0, true)
		n++
		last = o.Name
		return true
	})
	w := abi.NewWriter(nil)
	if more {
		w.Map(2)
		w.Text("next")
		w.Text(last)
	} else {
		w.Map(1)
	}
	w.Text("objects")
	w.Array(n)
	w.Encoded(string(body.Bytes()))
	return host.Raw(w.Bytes()), nil
}

func (p *provider) usage(_ context.Context, r *service.Request[Grant], x *space) (any, error) {
	if err := r.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	bytes, objects := x.usage()
	l := r.Grant.limits()
	return map[string]int64{"bytes": bytes, "objects": int64(objects), "quota": l.bytes, "quota_objects": int64(l.objects)}, nil
}

// answer describes an object, with its bytes or a stream of them.
func answer(o *Object, data []byte, source host.Ref) host.Raw {
	w := abi.NewWriter(nil)
	appendObject(w, o, data, uint64(source.UID()), false)
	return host.Raw(w.Bytes())
}

// appendObject appends {modified, sha256, size} and, where there are any, data, name, source and type.
func appendObject(w *abi.Writer, o *Object, data []byte, source uint64, name bool) {
	n := 3
	for _, has := range [...]bool{data != nil, name, source != 0, o.Type != ""} {
		if has {
			n++
		}
	}
	w.Map(n)
	if data != nil {
		w.Text("data")
		w.ByteString(data)
	}
	w.Text("modified")
	w.Int(o.Modified.UnixNano())
	if name {
		w.Text("name")
		w.Text(o.Name)
	}
	w.Text("sha256")
	w.ByteString(o.SHA256[:])
	w.Text("size")
	w.Int(o.Size)
	if source != 0 {
		w.Text("source")
		w.Uint(source)
	}
	if o.Type != "" {
		w.Text("type")
		w.Text(o.Type)
	}
}
