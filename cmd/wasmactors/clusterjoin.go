package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// joinFlags are the flags of run for clusters.
func joinFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "join", Usage: "join a cluster as the node of the folder `DIR`, which wasmactors cluster init has made, or --join-token makes"},
		&cli.StringFlag{Name: "join-token", Usage: "make the folder of --join, if there is none, with the token in `FILE`; - is standard input"},
	}
}

// joinTime bounds the wait for a cluster that takes a token.
const joinTime = time.Minute

// membership is a run's place in a cluster. A nil one is alone.
type membership struct {
	env      *environment
	identity *natscluster.Identity
	bundle   string // its name
	manifest *bundle.Cluster
	quiet    bool
	place    *natscluster.Cluster
	hold     *natscluster.Hold // of the node's folder
	lost     func(*cluster.Node, error)
	news     *news
	dev      *nodeOfDev // nil: dev has not started it
	operator *clusterAdmin
	orders   atomic.Int32 // of operators of other nodes, that are carried out

	running context.Context // the run's: what it waits for is waited for no longer

	mu      sync.Mutex
	node    *cluster.Node
	trusted *cluster.Trusted // what the bundle sees of it
	self    cluster.Member
	ended   bool
	drained bool // an operator has drained it: it is to get no shards when it joins again
}

// openMembership reads the flags and connects; it returns nil without --join.
func openMembership(c *cli.Context, env *environment, m *bundle.Manifest, dev *nodeOfDev) (*membership, error) {
	dir := c.String("join")
	switch {
	case dir == "" && c.IsSet("join-token"):
		return nil, usage("--join-token needs --join: the folder that it makes")
	case dir == "":
		return nil, nil
	case m.Cluster == nil:
		return nil, usage("%s has no key cluster, so it joins none: write `cluster: {}` into it", m.File)
	case m.Store != nil:
		return nil, usage("%s has a store, and a bundle with a store cannot join a cluster: refs of its actors outlive a node's number", m.File)
	case c.IsSet("seed"):
		return nil, usage("--seed cannot be combined with --join: nodes must not have the same secret")
	}
	x := &membership{env: env, bundle: m.Name, manifest: m.Cluster, quiet: c.Bool("quiet"), dev: dev}
	listen := m.Cluster.Listen
	if dev != nil {
		listen = "" // the address is for other machines
	}
	x.news = newNews(x.show)
	var err error
	if x.identity, err = identityOf(c, env, dir); err != nil {
		x.news.close()
		return nil, err
	}
	if !x.identity.Shares(m.Name) {
		x.news.close()
		return nil, usage("the token of node %s was for other bundles than %s: wasmactors cluster token --for %s makes one", x.identity.Node, m.Name, m.Name)
	}
	x.hold = x.identity.Hold()
	if x.place, err = natscluster.Open(c.Context, x.identity, natscluster.Options{Listen: listen, Events: x.event}); err != nil {
		x.news.close()
		_ = x.hold.Close()
		return nil, &unreachableError{err}
	}
	return x, nil
}

// identityOf reads a node's folder, or makes it with a token.
func identityOf(c *cli.Context, env *environment, dir string) (*natscluster.Identity, error) {
	_, err := os.Lstat(filepath.Join(dir, "cluster.json"))
	if file := c.String("join-token"); file != "" && errors.Is(err, fs.ErrNotExist) {
		text, err := readToken(env, file)
		if err != nil {
			return nil, usage("--join-token: %w", err)
		}
		ctx, cancel := context.WithTimeout(c.Context, joinTime)
		defer cancel()
		id, err := natscluster.Enrol(ctx, dir, text, credentialsIn(dir))
		if err != nil {
			return nil, &unreachableError{err}
		}
		return id, nil
	}
	id, err := natscluster.LoadIdentity(dir)
	if err != nil {
		return nil, usage("--join: %w", err)
	}
	return id, nil
}

func credentialsIn(dir string) string {
	path := filepath.Join(dir, natscluster.Credentials)
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	return path
}

func readToken(env *environment, file string) (string, error) {
	if file != "-" {
		b, err := regular.ReadFile(file, natscluster.MaxToken)
		return string(b), err
	}
	b := make([]byte, natscluster.MaxToken)
	n := 0
	for n < len(b) {
		k, err := env.stdin.Read(b[n:])
		n += k
		if err != nil {
			break
		}
	}
	return string(b[:n]), nil
}

// event has what happens in the cluster shown.
func (x *membership) event(e cluster.Event) { x.news.add(e) }

func (x *membership) show(e cluster.Event) { x.showKind(e.Kind.String(), e) }

func (x *membership) showKind(kind string, e cluster.Event) {
	if x.dev.ending() {
		return
	}
	if x.env.json {
		x.env.writeJSON(map[string]any{"event": "cluster", "kind": kind, "node": e.Node, "count": e.Count, "text": e.Text})
		return
	}
	if x.quiet {
		return
	}
	text := "cluster: " + kind
	if e.Node != 0 {
		text += fmt.Sprintf(" node %d", e.Node)
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d)", e.Count)
	}
	if e.Text != "" {
		text += ": " + oneLine(e.Text)
	}
	x.env.note(text)
}

// join gets a number, waiting for the directory as long as it takes.
func (x *membership) join(ctx context.Context) error {
	if x == nil {
		return nil
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	self := binary.LittleEndian.Uint64(id[:]) | 1
	if err := x.hold.Begins(self); err != nil {
		x.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: err.Error()})
	}
	var n *cluster.Node
	n, trusted, err := x.make(cluster.Config{
		Name: x.identity.Node, Roles: x.manifest.Roles, Zone: x.manifest.Zone, Identity: x.identity.Certificate(), Lease: x.identity.Lease, Brief: x.identity.Lease / 2,
		ID: self, Over: x.hold.Over(), Directory: x.place.Directory(), Links: x.place.Links(), Events: x.event,
		Lost: func(err error) { x.lost(n, err) },
	})
	if err != nil {
		return err
	}
	type result struct {
		m   cluster.Member
		err error
	}
	got := make(chan result, 1)
	n.Join(func(m cluster.Member, err error) { got <- result{m, err} })
	select {
	case r := <-got:
		if r.err != nil {
			return fmt.Errorf("node %s cannot join cluster %s: %w", x.identity.Node, x.identity.Name, r.err)
		}
		x.mu.Lock()
		x.node, x.trusted, x.self = n, trusted, r.m
		x.mu.Unlock()
		x.event(cluster.Event{Kind: cluster.EventJoined, Node: r.m.Number, Text: fmt.Sprintf("this is node %s of cluster %s", x.identity.Node, x.identity.Name)})
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// make makes a node, and what the bundle sees of it. Who has no right to the bundle has no control over its actors.
func (x *membership) make(cfg cluster.Config) (n *cluster.Node, trusted *cluster.Trusted, err error) {
	if x.manifest.Control {
		cfg.Control = func(m cluster.Member) bool { return trusted.Trusts(m) }
	}
	if n, err = cluster.New(cfg); err == nil {
		trusted = n.Trusting(func(m cluster.Member) error { return x.identity.RightTo(m, x.bundle) })
	}
	return n, trusted, err
}

// configure gives a system the number.
func (x *membership) configure(cfg host.Config) host.Config {
	if x == nil {
		return cfg
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return cfg.WithNode(x.self.Number)
}

// attach gives the node its system, before its first actor starts.
func (x *membership) attach(sys *host.System) {
	if x == nil {
		return
	}
	x.mu.Lock()
	n := x.node
	x.mu.Unlock()
	if err := x.reportTo(sys); err != nil {
		x.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: "other nodes cannot ask how this one does: " + err.Error()})
	}
	if err := n.Attach(sys); err != nil {
		x.event(cluster.Event{Kind: cluster.EventLost, Text: err.Error()}) // it was lost meanwhile: Lost follows
	}
}

// errUnshared says that those that keep what the nodes share have not answered in time.
var errUnshared = errors.New("what the nodes of the cluster share cannot be reached")

// sharing opens what the nodes share of a bundle for a service.
func (x *membership) sharing(of string) service.Sharing {
	return func(ctx context.Context, name string) (service.Shared, error) {
		return whileRunning(ctx, x, func(ctx context.Context) (service.Shared, error) { return x.place.Shared(ctx, name, of) })
	}
}

// log opens the journal of a bundle's keys.
func (x *membership) log(name string) func(context.Context) (cluster.Log, error) {
	return func(ctx context.Context) (cluster.Log, error) {
		return whileRunning(ctx, x, func(ctx context.Context) (cluster.Log, error) { return x.place.Journal(ctx, name) })
	}
}

// whileRunning opens something that the nodes share, as long as this one runs.
func whileRunning[T any](ctx context.Context, x *membership, open func(context.Context) (T, error)) (opened T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.running, cancel)()
	s, err := open(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return opened, fmt.Errorf("%w: %w", errUnshared, err)
	case err != nil:
		return opened, err
	}
	return s, nil
}

// spoilt says what the journal has that no node writes.
func (x *membership) spoilt(text string) {
	x.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: text})
}

// drains notes whether the node is drained.
func (x *membership) drains(on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drained = on
}

// leaveTime bounds the wait for the directory at the end of a run.
const leaveTime = 3 * time.Second

// close leaves the cluster, after the system has ended.
func (x *membership) close() {
	if x == nil {
		return
	}
	x.mu.Lock()
	n, ended := x.node, x.ended
	x.ended = true
	x.mu.Unlock()
	if ended {
		return
	}
	if n != nil && !x.dev.ending() {
		x.leave(n)
	}
	x.place.Close()
	_ = x.hold.Close()
	x.news.close()
}

// rejoin begins anew after the node was lost: the system ends, since others take its actors for ended, and starts under
// another number once the directory answers.
func (l *live) rejoin(lost *cluster.Node) {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.membership.mu.Lock()
	stale := l.membership.node != lost || l.membership.ended
	l.membership.mu.Unlock()
	if stale || l.running.Err() != nil || l.sys == nil {
		return
	}
	l.seen.Store(nil)
	stop, cancel := context.WithTimeout(context.Background(), stopGrace)
	_ = l.sys.Close(stop) // actors that do not stop are killed
	cancel()
	l.before = sumOf(l.before, l.sys.View().Stats())
	l.sys = nil
	err := beginAgain(l.running, l.membership, func() (err error) {
		l.sys, err = l.bundle.Start(l.system, l.watch)
		return err
	})
	switch {
	case l.running.Err() != nil && l.sys == nil:
		l.apart.Store(true)
	case err != nil:
		l.console.fail(err)
	default:
		l.membership.drainAgain(l.running, l.sys, l.bundle.Spread())
		l.show()
	}
}

// joiner is what joins a cluster, as often as it is lost.
type joiner interface {
	join(ctx context.Context) error
	// excuses reports whether the start of a system has failed since the cluster could not be reached. Then the node has left.
	excuses(err error) bool
}

// beginAgain joins, and starts a system, until both succeed. What ends it before is the end of the run, or an error that is none of
// the cluster's.
func beginAgain(ctx context.Context, x joiner, start func() error) error {
	for {
		err := again(ctx, x.join)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			if err = start(); err != nil && ctx.Err() == nil && x.excuses(err) {
				continue
			}
		}
		return err
	}
}

// excuses implements joiner. The node joins again under another number: others may know the system that was about to start.
func (x *membership) excuses(err error) bool {
	x.mu.Lock()
	n := x.node
	x.mu.Unlock()
	if n.Acting() && !errors.Is(err, errUnshared) {
		return false
	}
	x.event(cluster.Event{Kind: cluster.EventSilent, Text: "the bundle cannot be started, and the node joins again: " + err.Error()})
	x.leave(n)
	return true
}

// leave gives the node's number back, if the directory answers soon.
func (x *membership) leave(n *cluster.Node) {
	left := make(chan error, 1)
	n.Leave(func(err error) { left <- err })
	select {
	case <-left:
	case <-time.After(leaveTime):
	}
}

// drainAgain has a node that joins again drained, if it was.
func (x *membership) drainAgain(ctx context.Context, sys *host.System, kinds []string) {
	x.mu.Lock()
	drained := x.drained
	x.mu.Unlock()
	if !drained {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := drainAll(ctx, sys, kinds, true); err != nil {
		x.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: "the node was drained, and gets shards again: " + err.Error()})
	}
}

// mostNames is how often a node that was lost tries again although its name seems to be taken: renewals of its life before, which
// the directory has taken late, look like that.
const mostNames = 3

// again joins until that is possible.
func again(ctx context.Context, join func(context.Context) error) error {
	for names := 0; ; {
		err := join(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, cluster.ErrLost): // the directory has answered too late
		case errors.Is(err, cluster.ErrName) && names < mostNames:
			names++
		default:
			return err
		}
	}
}

// system configures a system of the run.
func (l *live) system(cfg host.Config) host.Config {
	if x := l.membership; x != nil {
		x.mu.Lock()
		n := x.trusted
		x.mu.Unlock()
		if n != nil {
			l.bundle.Join(n)
			l.bundle.Share(x.sharing(l.bundle.Manifest.Name))
			l.bundle.Keep(bundle.Logs{Open: x.log(l.bundle.Manifest.Name), Clock: host.RealClock(), Refused: x.spoilt})
		}
	}
	return l.membership.configure(systemOf(l.c, l.telemetry)(cfg))
}
