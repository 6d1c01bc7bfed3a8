// Package natscluster is the real directory and the real links of host/cluster, over NATS: servers that are embedded in the
// nodes that keep the directory, or one that exists. Who may be a node follows from certificates that the cluster's
// authority has signed; a new node gets its own for a token that is good once.
//
// Only programs that join clusters should import it: the server is larger than the rest of package host.
package natscluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/histogram"
	"github.com/wasmactors/wasmactors/internal/regular"
)

func (d *Description) stream() string         { return "WASMACTORS_" + d.ID }
func (d *Description) subject() string        { return "wasmactors." + d.ID }
func (d *Description) subjectEnrol() string   { return d.subject() + ".enrol" }
func (d *Description) subjectEntries() string { return d.subject() + ".d." }
func (d *Description) subjectTold() string    { return d.subject() + ".t." }
func (d *Description) subjectLinks(node string) string {
	return d.subject() + ".links." + hexName(node)
}

// inboxOf is what the subjects begin with on which a node is answered. No other node may read them.
func inboxOf(node string) string { return inboxes + hexName(node) }

const inboxes = "_INBOX_"

// hexName is a name as one token of a subject: names may contain dots.
func hexName(name string) string { return fmt.Sprintf("%x", name) }

// Options are what may be set for one start of a node.
type Options struct {
	// Listen is where a keeper listens, host:port, and at the port after it; "": at its address. It differs from the address
	// behind NAT.
	Listen string
	// Events gets what happens; nil: nobody. It must not block.
	Events func(cluster.Event)
}

// Cluster is this process's place in a cluster. Its methods may be called by any goroutine.
type Cluster struct {
	id      *Identity
	server  *embedded // nil: this node does not keep the directory
	nodes   *nats.Conn
	traffic *nats.Conn
	enrol   *nats.Conn // nil: it takes no tokens, or by nodes
	keys    *nats.Conn // to the journals of keys; nil: a keeper is asked
	dir     *store
	shared  shared
	serves  *keeperServer // other nodes; nil: it keeps nothing

	journals journals
	links    *links
	event    func(cluster.Event)

	unreached unreached
	took      histogram.Histogram // changes of the directory

	mu     sync.Mutex
	silent error // why the directory does not answer; nil: it does
	since  time.Time
	closed bool
}

// reconnect is how long a connection waits before it tries again.
const reconnect = 250 * time.Millisecond

// Open starts the embedded server, if the node keeps the directory, connects, and waits until the directory answers, which
// needs the majority of the keepers. It ends with ctx.
func Open(ctx context.Context, id *Identity, o Options) (*Cluster, error) {
	c := &Cluster{id: id, event: o.Events}
	c.shared.begins()
	c.journals.begins()
	if c.event == nil {
		c.event = func(cluster.Event) {}
	}
	if _, ok := id.Keeps(); !ok && o.Listen != "" {
		return nil, fmt.Errorf("natscluster: node %s does not keep the directory, so it listens nowhere: remove the address %s", id.Node, o.Listen)
	}
	if err := c.open(ctx, o.Listen); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) open(ctx context.Context, listen string) (err error) {
	if _, ok := c.id.Keeps(); ok {
		if c.server, err = startServer(c.id, listen); err != nil {
			return err
		}
	}
	if c.nodes, err = c.connect(accountDirectory); err != nil {
		return err
	}
	if c.traffic, err = c.connect(accountLinks); err != nil {
		return err
	}
	if err := c.serveEnrolment(); err != nil {
		return err
	}
	c.dir = c.newStore()
	if err := c.makeStream(ctx, c.dir); err != nil {
		return err
	}
	if err := c.checkDescription(ctx); err != nil {
		return err
	}
	if c.links, err = newLinks(c.id, c.traffic, c.event); err != nil {
		return err
	}
	c.links.greet(ctx)
	return c.openKept()
}

func (c *Cluster) newStore() *store {
	return &store{
		nc: c.nodes, what: "the directory", stream: c.id.stream(), prefix: c.id.subjectEntries(), told: c.id.subjectTold(), keys: maxKey, names: true, size: maxDirectory,
		trouble: c.trouble, why: c.why, over: make(chan struct{}), took: &c.took,
	}
}

// connect connects for an account; it tries until it is closed.
func (c *Cluster) connect(account string) (*nats.Conn, error) {
	o := []nats.Option{
		nats.Name(c.id.Node), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), nats.Timeout(2 * time.Second), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.NoEcho(),
		nats.ErrorHandler(c.asyncError), nats.FlusherTimeout(2 * time.Second), nats.IgnoreDiscoveredServers(), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(c.unreached.failed),
	}
	if account == accountLinks {
		o = append(o, nats.WriteBufferSize(1)) // their writer is a goroutine of its own: no other is to be woken to send a packet
	}
	if c.id.URL == "" {
		o = append(o, nats.CustomInboxPrefix(inboxOf(c.id.Node)))
	}
	switch {
	case c.server != nil:
		return nats.Connect("", append(o, c.server.options(account)...)...)
	case c.id.URL != "":
		more, err := c.id.outside()
		if err != nil {
			return nil, err
		}
		return nats.Connect(c.id.URL, append(o, more...)...)
	}
	o = append(o, nats.Secure(c.id.transport(func(name string) bool { _, ok := c.id.keeper(name); return ok }, false)), nats.UserInfo(account, ""))
	return nats.Connect(addresses(c.id.Keepers), o...)
}

// unreached is why the last attempt to connect has failed.
type unreached struct{ last atomic.Pointer[error] }

func (u *unreached) failed(_ *nats.Conn, err error) { u.last.Store(&err) }

// why is what has ended a request with err: with no connection, why there is none.
func (u *unreached) why(nc *nats.Conn, where string, err error) error {
	if nc.IsConnected() {
		return err
	}
	if last := u.last.Load(); last != nil {
		err = *last
	}
	return fmt.Errorf("nothing answers at %s: %w", where, err)
}

func (c *Cluster) why(err error) error { return c.unreached.why(c.nodes, c.id.where(), err) }

func addresses(keepers []Keeper) (all string) {
	for _, k := range keepers {
		all += ",tls://" + k.Address
	}
	return all[1:]
}

// outside are the credentials for a NATS that exists.
func (id *Identity) outside() ([]nats.Option, error) {
	path := filepath.Join(id.dir, fileCredentials)
	f, err := regular.Open(path)
	if err != nil {
		return nil, nil // it asks for none, or the URL has them
	}
	return []nats.Option{nats.UserCredentials(path)}, f.Close()
}

func (c *Cluster) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		n := 0
		if sub != nil {
			n, _ = sub.Dropped()
		}
		c.event(cluster.Event{Kind: cluster.EventGap, Count: uint64(max(n, 0)), Text: "this node is too slow for what arrives: packets were dropped, and are sent again"})
		return
	}
	c.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: "NATS: " + err.Error()})
}

// trouble notes whether the directory answers.
func (c *Cluster) trouble(err error) {
	c.mu.Lock()
	was := c.silent
	if c.silent = err; was == nil {
		c.since = time.Now()
	}
	c.mu.Unlock()
	switch {
	case err != nil && was == nil:
		c.event(cluster.Event{Kind: cluster.EventSilent, Text: err.Error()})
	case err == nil && was != nil:
		c.event(cluster.Event{Kind: cluster.EventAnswers, Text: "the directory answers again"})
	}
}

// Silent is why the directory has not answered the last change; nil if it has.
func (c *Cluster) Silent() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent
}

// SilentFor is how long the directory has not answered; 0: it does.
func (c *Cluster) SilentFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent == nil {
		return 0
	}
	return time.Since(c.since)
}

// Needs says which nodes the directory needs, as text.
func (c *Cluster) Needs() string {
	n := len(c.id.Keepers)
	switch {
	case n == 0:
		return "the NATS at " + c.id.where()
	case n == 1:
		return "node " + c.id.Keepers[0].Name
	}
	names := make([]string, n)
	for i, k := range c.id.Keepers {
		names[i] = k.Name
	}
	return fmt.Sprintf("%d of the nodes %s", n/2+1, strings.Join(names, ", "))
}

// Changes is how long changes of the directory took, from this node.
func (c *Cluster) Changes() histogram.Counts { return c.took.Counts() }

// makes says whether this node makes streams: a keeper does, and each node if the NATS is not the cluster's own.
func (c *Cluster) makes() bool { return c.server != nil || c.id.URL != "" }

// makeStream makes the stream of a store, or finds it, and refuses one that is made otherwise: a member may have been first.
func (c *Cluster) makeStream(ctx context.Context, of *store) error {
	return c.makeStreamOf(ctx, of.nc, of.what, of.streamConfig(max(1, len(c.id.Keepers))), of.aside)
}

// makeStreamOf is makeStream of any stream. told says that no event is to say that it takes time.
func (c *Cluster) makeStreamOf(ctx context.Context, nc *nats.Conn, what string, cfg jetstream.StreamConfig, told bool) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return c.insist(ctx, what, told, func() error {
		once, cancel := context.WithTimeout(ctx, putTime)
		defer cancel()
		var s jetstream.Stream
		err := errors.New("the stream is not there yet")
		if c.makes() {
			s, err = js.CreateStream(once, cfg)
		}
		if err != nil {
			s, err = js.Stream(once, cfg.Name)
		}
		if err != nil {
			return err
		}
		if err = differs(s.CachedInfo().Config, cfg); err != nil {
			err = fmt.Errorf("natscluster: %s: stream %s was made by another one than this program: %w", what, cfg.Name, err)
			c.event(cluster.Event{Kind: cluster.EventRefused, Count: 1, Text: err.Error()})
		}
		return err
	})
}

// insist tries something again and again until it has succeeded, a stream turns out to be another one (errDiffers), or ctx ends: what has
// not answered then. told says that no event is to say that it takes time.
func (c *Cluster) insist(ctx context.Context, what string, told bool, try func() error) error {
	for {
		err := try()
		if err == nil || errors.Is(err, errDiffers) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("natscluster: %s does not answer (%w): %s", what, ctx.Err(), c.waitsFor(err))
		}
		if !told {
			told = true
			c.event(cluster.Event{Kind: cluster.EventSilent, Text: c.waitsFor(err)})
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// errDiffers says that a stream was made otherwise than this program makes it.
var errDiffers = errors.New("is not what it should be")

// differs says in what a stream differs from the one that this program would make, of what decides how long, where and in what order
// it keeps entries. An operator may give it more replicas.
func differs(is, want jetstream.StreamConfig) error {
	for _, x := range []struct {
		what     string
		is, want any
	}{
		{"storage", is.Storage, want.Storage}, {"subjects", is.Subjects, want.Subjects}, {"retention", is.Retention, want.Retention}, {"max_age", is.MaxAge, want.MaxAge},
		{"max_msgs_per_subject", is.MaxMsgsPerSubject, want.MaxMsgsPerSubject}, {"max_msg_size", is.MaxMsgSize, want.MaxMsgSize},
		{"max_msgs", max(is.MaxMsgs, 0), max(want.MaxMsgs, 0)}, {"max_bytes", is.MaxBytes, want.MaxBytes}, {"discard", is.Discard, want.Discard},
		{"discard_new_per_subject", is.DiscardNewPerSubject, false}, {"replicas", is.Replicas < want.Replicas, false},
		{"no_ack", is.NoAck, false}, {"sealed", is.Sealed, false}, {"deny_delete", is.DenyDelete, want.DenyDelete}, {"allow_rollup_hdrs", is.AllowRollup, want.AllowRollup},
		{"allow_direct", is.AllowDirect, want.AllowDirect}, {"allow_msg_ttl", is.AllowMsgTTL, want.AllowMsgTTL},
		{"subject_delete_marker_ttl", is.SubjectDeleteMarkerTTL, want.SubjectDeleteMarkerTTL}, {"mirror", is.Mirror != nil, false}, {"sources", len(is.Sources), 0},
		{"subject_transform", is.SubjectTransform != nil, false}, {"republish", is.RePublish, want.RePublish},
	} {
		if !reflect.DeepEqual(x.is, x.want) {
			return fmt.Errorf("its %s %w", x.what, errDiffers)
		}
	}
	return nil
}

func (c *Cluster) waitsFor(err error) string {
	err = c.why(err)
	if n := len(c.id.Keepers); n > 1 {
		return fmt.Sprintf("%v; it needs %d of the %d nodes that keep it", err, n/2+1, n)
	}
	return err.Error()
}

// keyDescription is the entry of the directory that says whose it is.
const keyDescription = "cluster"

// protocol is what nodes of one cluster must have in common.
const protocol = 1

type description struct {
	Protocol  int    `json:"protocol"`
	Authority string `json:"authority"` // its public key, in hex
}

// own is what this node knows.
func (c *Cluster) own() []byte {
	public, err := publicOf(c.id.authority)
	if err != nil {
		panic(err) // it was checked
	}
	b, err := json.Marshal(description{protocol, hexName(string(public.Bytes()))})
	if err != nil {
		panic(err) // of a number and a text
	}
	return b
}

// checkDescription refuses a directory of another authority or protocol.
func (c *Cluster) checkDescription(ctx context.Context) error {
	own := c.own()
	for {
		err := describe(own, func() error { _, err := c.dir.put(keyDescription, own, 0, 0); return err },
			func() ([]byte, uint64, error) { return c.dir.get(ctx, keyDescription) })
		if err == nil || errors.Is(err, ErrOther) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("natscluster: the directory does not answer (%w): %s", ctx.Err(), c.waitsFor(err))
		case <-time.After(reconnect):
		}
	}
}

// errNotThere says that what another node writes at this moment cannot be read yet.
var errNotThere = errors.New("the entry is being written")

// describe writes what this node knows, or compares it with what is there. An error other than ErrOther is one to try again.
func describe(own []byte, put func() error, get func() ([]byte, uint64, error)) error {
	err := put()
	if !errors.Is(err, cluster.ErrConflict) {
		return err
	}
	there, revision, err := get()
	switch {
	case err != nil:
		return err
	case revision == 0:
		return errNotThere
	}
	return checkOther(there, own)
}

// checkOther compares what the directory says of itself with what this node knows.
func checkOther(there, own []byte) error {
	var d, mine description
	if err := json.Unmarshal(there, &d); err != nil {
		return fmt.Errorf("natscluster: %w: the directory does not say whose it is: %w", ErrOther, err)
	}
	if err := json.Unmarshal(own, &mine); err != nil {
		return err
	}
	switch {
	case d.Authority != mine.Authority:
		return fmt.Errorf("natscluster: %w: the directory is of another authority: a cluster with the same ID uses this NATS", ErrOther)
	case d.Protocol != mine.Protocol:
		return fmt.Errorf("natscluster: %w: the cluster speaks version %d of the protocol, and this program %d", ErrOther, d.Protocol, mine.Protocol)
	}
	return nil
}

// ErrOther says that a directory is of another cluster, or of one that this program does not understand.
var ErrOther = errors.New("the cluster is another one")

// Directory is the cluster's.
func (c *Cluster) Directory() cluster.Directory { return c.dir }

// Links are the node's.
func (c *Cluster) Links() cluster.Links { return c.links }

// Close leaves NATS, and ends the embedded server. The node should have left the cluster before.
func (c *Cluster) Close() {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	if c.links != nil {
		c.links.close()
	}
	c.shared.close()
	c.journals.close()
	if c.dir != nil {
		c.dir.close()
	}
	for _, nc := range []*nats.Conn{c.enrol, c.keys, c.traffic, c.nodes} {
		if nc != nil {
			nc.Close()
		}
	}
	if c.server != nil {
		c.server.close()
	}
}

// serveEnrolment takes nodes with tokens, where the authority's key is.
func (c *Cluster) serveEnrolment() (err error) {
	if c.id.authorityKey == nil {
		return nil
	}
	nc := c.nodes
	if c.server != nil {
		if c.enrol, err = c.connect(accountEnrol); err != nil {
			return err
		}
		nc = c.enrol
	}
	refused := &refusals{event: c.event}
	sub, err := nc.Subscribe(c.id.subjectEnrol(), func(m *nats.Msg) {
		reply, node, why := c.id.admit(m.Data, time.Now())
		if why != "" {
			refused.tell(0, "a node was not enrolled: "+quoted(node)+why)
		}
		if reply != nil {
			_ = m.Respond(reply)
		}
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(256, 256*maxEnrol)
}

func quoted(node string) string {
	if node == "" {
		return ""
	}
	return fmt.Sprintf("%q: ", node)
}

// Enrol makes a node's folder with a token. credentials is the file for a NATS that exists; "" for none.
func Enrol(ctx context.Context, dir, text, credentials string) (*Identity, error) {
	t, err := parseToken(text)
	if err != nil {
		return nil, err
	}
	e, b, err := newEnrolment(t)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil { // before the token is used
		return nil, err
	}
	u := &unreached{}
	o := []nats.Option{
		nats.Timeout(2 * time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.RetryOnFailedConnect(true), nats.IgnoreDiscoveredServers(),
		nats.ReconnectBufSize(-1), nats.ReconnectErrHandler(u.failed),
	}
	where, shown := t.URL, withoutSecrets(t.URL)
	if where == "" {
		var keepers []Keeper
		for _, a := range t.Addresses {
			keepers = append(keepers, Keeper{Address: a})
		}
		where, shown = addresses(keepers), (&Description{Keepers: keepers}).where()
		o = append(o, nats.Secure(t.transport()), nats.UserInfo(accountEnrol, ""))
	} else if credentials != "" {
		o = append(o, nats.UserCredentials(credentials))
	}
	nc, err := nats.Connect(where, o...)
	if err != nil {
		return nil, fmt.Errorf("natscluster: %w", err)
	}
	defer nc.Close()
	for { // each time with the same key, for which the token is good again
		once, cancel := context.WithTimeout(ctx, putTime)
		r, err := nc.RequestWithContext(once, (&Description{ID: t.Cluster}).subjectEnrol(), b)
		cancel()
		if err == nil {
			return e.finish(dir, r.Data)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("natscluster: the node that takes tokens does not answer (%w): is it up, and is this a token of its cluster?", u.why(nc, shown, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// transport is the TLS of a node that has no certificate yet: at the other end is a node of the token's authority.
func (t *token) transport() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // of hosts' names: VerifyConnection checks the certificate
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) != 2 {
				return errors.New("natscluster: the server is no node of a cluster")
			}
			public, err := publicOf(s.PeerCertificates[1])
			if err != nil || !bytes.Equal(public.Bytes(), t.Authority) {
				return errors.New("natscluster: the server is of another authority than the token")
			}
			_, err = nameOf(s.PeerCertificates[1], s.PeerCertificates[0])
			return err
		},
	}
}
