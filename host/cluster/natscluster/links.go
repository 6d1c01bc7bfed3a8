package natscluster

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// Links carry packets over NATS: a subject for each node. Each packet is encrypted and authenticated with a key that only its
// two nodes can derive: from their certificates' keys, and from a salt that the sender has drawn at its start. So whoever
// runs the NATS, or is another member, can read nothing and can be nobody else; what is replayed is of a stream that has
// counted it already.

const (
	packetVersion = 1
	saltBytes     = 16
	sealedHead    = 1 + saltBytes + 8 + 1 // and the sender's name
	mostQueued    = 4096                  // packets
	mostSalts     = 4                     // of one sender, of which packets may be under way
	pendingBytes  = 64 << 20
	subscribeTime = 10 * time.Second // for the server to know a subscription
)

type links struct {
	id     *Identity
	nc     *nats.Conn
	salt   [saltBytes]byte
	event  func(cluster.Event)
	queue  chan outgoing
	over   chan struct{}
	done   chan struct{}
	sub    *nats.Subscription
	count  uint64       // of packets; of the writer alone, as is
	sealed []byte       // the last one
	lost   atomic.Int64 // packets that were not sent since the last event
	closed sync.Once

	refused *refusals

	mu      sync.Mutex
	peers   map[uint16]*peer
	names   map[string]*peer
	receive func(uint16, []byte)
}

type outgoing struct {
	to     *peer
	packet []byte
}

// peer is another node, as far as the links know it.
type peer struct {
	number  uint16
	born    uint64
	name    string
	subject string
	shared  []byte // only the two nodes have it
	out     cipher.AEAD
	in      map[[saltBytes]byte]cipher.AEAD
	salts   [][saltBytes]byte // of in, oldest first
}

func newLinks(id *Identity, nc *nats.Conn, event func(cluster.Event)) (*links, error) {
	l := &links{id: id, nc: nc, event: event, queue: make(chan outgoing, mostQueued), over: make(chan struct{}), done: make(chan struct{}), peers: map[uint16]*peer{}, names: map[string]*peer{}, refused: &refusals{event: event}}
	if _, err := rand.Read(l.salt[:]); err != nil {
		return nil, err
	}
	var err error
	if l.sub, err = nc.Subscribe(id.subjectLinks(id.Node), l.arrive); err != nil {
		return nil, err
	}
	if err := l.sub.SetPendingLimits(-1, pendingBytes); err != nil {
		return nil, err
	}
	if err := l.answerGreetings(); err != nil {
		return nil, err
	}
	if err := nc.FlushTimeout(subscribeTime); err != nil { // else packets for a node that has joined may find no subscription
		return nil, fmt.Errorf("the subscription of the links: %w", err)
	}
	go l.write()
	return l, nil
}

func (l *links) close() {
	l.closed.Do(func() {
		_ = l.sub.Unsubscribe()
		close(l.over)
		<-l.done
	})
}

// MaxPacket implements cluster.Links.
func (l *links) MaxPacket() int { return maxPayload - sealedHead - 255 - 16 - 4096 }

// Receive implements cluster.Links.
func (l *links) Receive(f func(uint16, []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receive = f
}

// Introduce implements cluster.Introducer.
func (l *links) Introduce(m cluster.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[m.Number]; p != nil && (m.Gone || p.born != m.Born) {
		delete(l.peers, m.Number)
		if l.names[p.name] == p {
			delete(l.names, p.name)
		}
	}
	if m.Gone || l.peers[m.Number] != nil || m.Name == l.id.Node {
		return
	}
	p, err := l.newPeer(m)
	if err != nil {
		l.refused.tell(m.Number, "it is not who it says: "+err.Error())
		return
	}
	l.peers[m.Number], l.names[m.Name] = p, p
}

func (l *links) newPeer(m cluster.Member) (*peer, error) {
	if len(m.Identity) > maxCertificate {
		return nil, errors.New("its certificate is too large")
	}
	c, err := x509.ParseCertificate(m.Identity)
	if err != nil {
		return nil, errors.New("it has no certificate")
	}
	name, err := nameOf(l.id.authority, c)
	if err != nil {
		return nil, err
	}
	if name != m.Name {
		return nil, errors.New("its certificate is of node " + name)
	}
	public, err := publicOf(c)
	if err != nil {
		return nil, err
	}
	own, err := l.id.key.ECDH()
	if err != nil {
		return nil, err
	}
	p := &peer{number: m.Number, born: m.Born, name: name, subject: l.id.subjectLinks(name), in: map[[saltBytes]byte]cipher.AEAD{}}
	if p.shared, err = own.ECDH(public); err != nil {
		return nil, err
	}
	p.out, err = l.pairKey(p, l.salt, l.id.Node, name)
	return p, err
}

// pairKey is the key of packets from one node to another, of the sender's start with the salt.
func (l *links) pairKey(p *peer, salt [saltBytes]byte, from, to string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, p.shared, salt[:], "wasmactors link "+l.id.ID+" "+from+" "+to, 32)
	if err != nil {
		return nil, err
	}
	return newAEAD(key)
}

// Send implements cluster.Links.
func (l *links) Send(to uint16, packet []byte) {
	l.mu.Lock()
	p := l.peers[to]
	l.mu.Unlock()
	if p == nil {
		return
	}
	select {
	case l.queue <- outgoing{p, packet}:
	default:
		l.lost.Add(1)
		cluster.Free(packet)
	}
}

// write sends what is queued.
func (l *links) write() {
	defer close(l.done)
	for {
		select {
		case <-l.over:
			return
		case o := <-l.queue:
			l.count++
			if l.nc.Publish(o.to.subject, l.seal(o.to, o.packet)) != nil {
				l.lost.Add(1)
			}
			cluster.Free(o.packet)
		}
		if n := l.lost.Swap(0); n > 0 {
			l.event(cluster.Event{Kind: cluster.EventGap, Count: uint64(n), Text: "packets could not be sent: NATS is not there, or is too slow; they are sent again"})
		}
	}
}

// seal encrypts the packet with the number count. What it returns is valid until the next one.
func (l *links) seal(to *peer, packet []byte) []byte {
	b := slices.Grow(l.sealed[:0], sealedHead+len(l.id.Node)+len(packet)+16)
	b = append(append(b, packetVersion), l.salt[:]...)
	b = binary.BigEndian.AppendUint64(b, l.count)
	b = append(append(b, byte(len(l.id.Node))), l.id.Node...)
	l.sealed = to.out.Seal(b, nonce(l.count), packet, b)
	return l.sealed
}

func nonce(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), n) }

// arrive takes a packet of anybody.
func (l *links) arrive(m *nats.Msg) {
	number, packet, why := l.open(m.Data)
	if why != "" {
		l.refused.tell(number, why)
		return
	}
	l.mu.Lock()
	f := l.receive
	l.mu.Unlock()
	if f != nil && packet != nil {
		f(number, packet)
	}
}

// open decrypts a packet, in its own memory. A packet of a node that is not known yet is nil: it is sent again.
func (l *links) open(b []byte) (uint16, []byte, string) {
	if len(b) < sealedHead+1+16 || len(b) < sealedHead+int(b[sealedHead-1])+16 {
		return 0, nil, "a packet is malformed"
	}
	if b[0] != packetVersion {
		return 0, nil, "a packet is of another version of the protocol"
	}
	salt := [saltBytes]byte(b[1 : 1+saltBytes])
	count := binary.BigEndian.Uint64(b[1+saltBytes:])
	head := sealedHead + int(b[sealedHead-1])
	l.mu.Lock()
	p := l.names[string(b[sealedHead:head])]
	if p == nil {
		l.mu.Unlock()
		return 0, nil, ""
	}
	aead, err := p.in[salt], error(nil)
	l.mu.Unlock()
	known := aead != nil
	if !known {
		if aead, err = l.pairKey(p, salt, p.name, l.id.Node); err != nil {
			return p.number, nil, err.Error()
		}
	}
	packet, err := aead.Open(b[head:head], nonce(count), b[head:], b[:head])
	if err != nil {
		return p.number, nil, "a packet is not of the node that it names, or not of this cluster"
	}
	if !known {
		l.remember(p, salt, aead)
	}
	return p.number, packet, ""
}

func (l *links) remember(p *peer, salt [saltBytes]byte, aead cipher.AEAD) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.in[salt] != nil {
		return
	}
	if len(p.salts) == mostSalts {
		delete(p.in, p.salts[0])
		p.salts = p.salts[1:]
	}
	p.in[salt] = aead
	p.salts = append(p.salts, salt)
}
