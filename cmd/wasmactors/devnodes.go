package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
	"github.com/wasmactors/wasmactors/host/service/all"
)

// devNodes is where a dev with --nodes has its bundle run: processes of this machine, each of which is a node of a cluster that is
// made for them. It implements bundle.DevPlace: dev builds and checks, and the nodes read the result when they are told to.
type devNodes struct {
	c       *cli.Context
	env     *environment
	console *console
	path    string // of the bundle
	folder  string // for those of the nodes; "": it was not made yet

	mu      sync.Mutex
	nodes   []*devNode
	began   int // clusters
	allowed []string
	ended   chan struct{} // closed when no node runs any more
	cause   error
	stopped bool // they end, or start: what ends is not started again
}

func newDevNodes(c *cli.Context, env *environment, console *console, path string) *devNodes {
	p := &devNodes{c: c, env: env, console: console, path: path, ended: make(chan struct{})}
	for i := range c.Int("nodes") {
		p.nodes = append(p.nodes, &devNode{devNodes: p, number: i + 1, name: nameOfNode(i + 1)})
	}
	return p
}

// keepers is how many of so many nodes keep the directory: two of three can do without the third.
func keepers(nodes int) int {
	if nodes < 3 {
		return 1
	}
	return 3
}

// Start implements bundle.DevPlace. The nodes begin a new cluster.
func (p *devNodes) Start(ctx context.Context, b *bundle.Bundle) error {
	each, err := p.manifests()
	if err != nil {
		return err
	}
	if err := p.found(); err != nil {
		return err
	}
	p.mu.Lock()
	p.ended, p.cause, p.stopped, p.allowed = make(chan struct{}), nil, true, p.permissions()
	p.mu.Unlock()
	errs := p.begin(ctx, p.nodes, each)
	p.mu.Lock()
	p.stopped = false
	p.mu.Unlock()
	for i, n := range p.nodes {
		if errs[i] == nil && n.running() == nil {
			errs[i] = fmt.Errorf("node %s: it has ended as soon as it was up", n.name)
		}
	}
	if err := errors.Join(errs...); err != nil {
		p.Stop()
		return err
	}
	return nil
}

// errGivenUp is why a node is not waited for any more: another one, which may keep the directory, does not come up.
var errGivenUp = errors.New("it is not waited for, since another node has not started")

// begin starts those of the nodes, and returns when they are up: all at a time, since one may wait for the directory that another
// one keeps. After the first that fails the others are given up. Errors are by the number of the node.
func (p *devNodes) begin(ctx context.Context, nodes []*devNode, each []*bundle.Manifest) []error {
	within, giveUp := context.WithCancel(ctx)
	defer giveUp()
	errs := make([]error, len(p.nodes))
	var wait sync.WaitGroup
	for _, n := range nodes {
		n.allow()
		wait.Go(func() {
			run, err := n.launch(each[n.number-1])
			if errors.Is(err, errNotNeeded) { // it was killed, and has started again by itself
				run = n.running()
			}
			if run != nil {
				err = run.up(within)
			}
			if err == nil {
				return
			}
			if within.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
				err = errGivenUp
			}
			giveUp()
			errs[n.number-1] = fmt.Errorf("node %s: %w", n.name, err)
		})
	}
	wait.Wait()
	return errs
}

// manifests are those of the nodes, which differ by their variables. What they reach must be allowed.
func (p *devNodes) manifests() ([]*bundle.Manifest, error) {
	var each []*bundle.Manifest
	for _, n := range p.nodes {
		m, err := p.manifest(n.number)
		if err == nil {
			err = bundle.Options{Allow: p.env.consent.ask}.Consent(m)
		}
		if err != nil {
			return nil, err
		}
		each = append(each, m)
	}
	switch m := each[0]; {
	case m.Cluster == nil:
		return nil, fmt.Errorf("%s has no key cluster, so its nodes cannot join one: write `cluster: {}` into it", near(m.File))
	case m.Store != nil:
		return nil, fmt.Errorf("%s has a store, and a bundle with a store cannot join a cluster: refs of its actors outlive a node's number", near(m.File))
	}
	if text := sharedAddress(each); text != "" {
		return nil, errors.New(text)
	}
	return each, nil
}

// manifest is what the bundle says to a node.
func (p *devNodes) manifest(number int) (*bundle.Manifest, error) {
	vars, err := variablesOfNode(p.c, number)
	if err != nil {
		return nil, err
	}
	return bundle.LoadWith(p.path, vars, all.Kinds()...)
}

func variablesOfNode(c *cli.Context, number int) (bundle.Variables, error) {
	var flags []string
	for _, text := range c.StringSlice("env") {
		flags = append(flags, ofNode(text, number))
	}
	return variablesOf(flags)
}

// permissions are the flags for what dev was allowed, also at the terminal.
func (p *devNodes) permissions() (flags []string) {
	x := p.env.consent
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, given := range x.given {
		flags = append(flags, "--allow="+given.String())
	}
	return flags
}

// found makes the folders of the nodes of a new cluster: nodes that have ended without leaving the one before are still members there.
func (p *devNodes) found() error {
	if p.folder == "" {
		dir, err := os.MkdirTemp("", "wasmactors-dev-")
		if err != nil {
			return err
		}
		p.folder = dir
	}
	p.began++
	dir := filepath.Join(p.folder, strconv.Itoa(p.began))
	addresses, err := freeAddresses(keepers(len(p.nodes)))
	if err != nil {
		return err
	}
	d := natscluster.Description{Name: "dev"}
	for i, address := range addresses {
		d.Keepers = append(d.Keepers, natscluster.Keeper{Name: p.nodes[i].name, Address: address})
	}
	var first *natscluster.Identity
	for i, n := range p.nodes {
		n.folder = filepath.Join(dir, n.name)
		if i == 0 {
			first, err = natscluster.Init(n.folder, n.name, d)
		} else {
			_, err = first.Sibling(n.folder, n.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freeAddresses are addresses of this machine at which nobody listens, nor at the ports after them.
func freeAddresses(n int) (found []string, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	const tries = 100
	for range tries {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		port := l.Addr().(*net.TCPAddr).Port
		after, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+1)))
		if err != nil {
			continue
		}
		held = append(held, after)
		if found = append(found, l.Addr().String()); len(found) == n {
			return found, nil
		}
	}
	return nil, errors.New("no ports are free for the nodes")
}

// Change implements bundle.DevPlace. The nodes take the change one after the other; those that have ended start again.
func (p *devNodes) Change(ctx context.Context, c *bundle.Change) (done []bundle.ActorChange, why []string) {
	each, err := p.manifests()
	if err != nil { // the files have changed again, or what they reach is not allowed
		return []bundle.ActorChange{failedOn("", err)}, nil
	}
	if p.mu.Lock(); !slices.Equal(p.allowed, p.permissions()) {
		why = []string{"it reaches more outside of its folder than before"}
	}
	p.mu.Unlock()
	if len(why) > 0 {
		return nil, why
	}
	var missing []*devNode
	for _, n := range p.nodes {
		if n.running() == nil {
			missing = append(missing, n)
		}
	}
	errs := p.begin(ctx, missing, each)
	for i, n := range p.nodes {
		if len(why) > 0 || ctx.Err() != nil {
			return nil, why
		}
		if errs[i] != nil {
			done = append(done, failedOn(n.name, errors.Unwrap(errs[i])))
			if n.running() != nil { // it waits for what does not come: the next change starts it again
				n.stop()
			}
			continue
		}
		run := n.running()
		if run == nil || slices.Contains(missing, n) {
			continue
		}
		more, err := run.reload(ctx)
		var refused *admin.Problem
		switch {
		case errors.As(err, &refused) && (refused.Code == "needs_restart" || refused.Code == "outside"):
			why = append(why, "node "+n.name+": "+refused.Message)
		case err != nil:
			done = append(done, failedOn(n.name, err))
		}
		done = append(done, more...)
	}
	if len(why) > 0 {
		return nil, why
	}
	c.Replace()
	return done, nil
}

// failedOn is a node that could not take a change.
func failedOn(node string, err error) bundle.ActorChange {
	return bundle.ActorChange{Node: node, Path: "/user", Did: "changed", Err: err}
}

// reload has a node read the bundle again.
func (r *nodeRun) reload(ctx context.Context) (done []bundle.ActorChange, err error) {
	c := client.Dial(r.socket)
	defer c.Close()
	got, err := client.Post[admin.Reloaded](ctx, c, "/v1/reload", admin.Reload{})
	for _, a := range got.Actors {
		x := bundle.ActorChange{Node: r.node.name, Path: a.Path, Did: a.Did, Why: a.Why, Module: a.Module}
		if a.Error != "" {
			x.Err = errors.New(a.Error)
		}
		done = append(done, x)
	}
	return done, err
}

// Ended implements bundle.DevPlace.
func (p *devNodes) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Cause implements bundle.DevPlace.
func (p *devNodes) Cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// Stop implements bundle.DevPlace. All nodes end at a time, in order, and none takes the others for lost.
func (p *devNodes) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	var wait sync.WaitGroup
	for _, n := range p.nodes {
		wait.Go(n.stop)
	}
	wait.Wait()
}

// verdict is what the input has led to, after all have ended.
func (p *devNodes) verdict() error {
	if code := p.nodes[0].code; code == exitLines {
		return &codeError{code}
	}
	return nil
}

// feed has lines of input fed to the first node.
func (p *devNodes) feed(ctx context.Context, input io.Reader) error {
	run := p.nodes[0].running()
	if run == nil {
		return errors.New("node n1, which gets it, does not run")
	}
	run.answers.feed(run.fed)
	lines := make(chan []byte)
	var failed error
	go func() { // it may wait for a terminal
		defer close(lines)
		s := bufio.NewScanner(input)
		s.Buffer(make([]byte, 64<<10), bundle.MaxLine)
		for s.Scan() {
			select {
			case lines <- append(bytes.Clone(s.Bytes()), '\n'):
			case <-ctx.Done():
				return
			}
		}
		failed = s.Err()
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return failed
			}
			if _, err := run.input.Write(line); err != nil {
				return fmt.Errorf("node n1 does not take it: %w", err)
			}
			run.fed++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dashboard makes a page that leads to the dashboard of the first node, and returns its address.
func (p *devNodes) dashboard(ctx context.Context) (string, error) {
	run := p.nodes[0].running()
	if run == nil {
		return "", errors.New("node n1 does not run")
	}
	c := client.Dial(run.socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, client.Patience)
	defer cancel()
	about, err := client.Get[admin.About](ctx, c, "/v1/server", nil)
	if err != nil {
		return "", err
	}
	file := ofNode(p.c.String("admin-token-file"), 1)
	if file == "" {
		file = endpoint.TokenPath(run.socket)
	}
	token, err := admin.TokenFile(file)
	if err != nil {
		return "", err
	}
	page := filepath.Join(p.folder, "dashboard.html")
	_ = os.Remove(page) // of an earlier start
	return dashboardPage(page, about.Address, token)
}

// close removes the folders of the nodes.
func (p *devNodes) close() {
	p.Stop()
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
}

// processes are the nodes that run, as text.
func (p *devNodes) processes() string {
	var parts []string
	all := p.pids()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, all[name]))
	}
	return strings.Join(parts, " ")
}

// pids are the processes of the nodes that run, by name.
func (p *devNodes) pids() map[string]int {
	all := map[string]int{}
	for _, n := range p.nodes {
		if run := n.running(); run != nil {
			all[n.name] = run.cmd.Process.Pid
		}
	}
	return all
}

// tell says what has become of a node.
func (p *devNodes) tell(n *devNode, why, then string) {
	switch {
	case p.console.json:
		p.env.writeJSON(map[string]any{"event": "dev", "kind": "node", "node": n.name, "text": why, "then": then})
	case !p.console.quiet:
		p.console.log.Warn("node "+n.name+" "+why, "then", then)
	}
}
