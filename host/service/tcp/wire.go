package tcp

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Messages of connections and listeners to the actor that has them.
const (
	Connected  = "tcp.connected"   // a connection waits for "register"
	Data       = "tcp.data"        // bytes of the peer
	PeerClosed = "tcp.peer-closed" // the peer writes no more; with keep_open
	Refused    = "tcp.refused"     // a command that was told was not done
	Writable   = "tcp.writable"    // there is room again
	Closed     = "tcp.closed"      // the last message of a connection
	Unbound    = "tcp.unbound"     // the last message of a listener
)

// The ways in which connections end.
const (
	HowClosed    = "closed"    // flushed, as the actor has asked
	HowConfirmed = "confirmed" // the peer has closed after the actor's half
	HowAborted   = "aborted"   // reset, as the actor has asked
	HowPeer      = "peer"      // the peer has closed
	HowError     = "error"
)

// Overhead is what each message of a connection takes of its window beside its own bytes.
const Overhead = 64

// options are what a guest says of a connection, or of those of a listener.
type options struct {
	Framing  Framing `cbor:"framing"`
	Window   uint64  `cbor:"window"` // bytes on their way to the actor; default DefaultWindow
	Pull     bool    `cbor:"pull"`   // nothing comes before the actor asks with "more"
	KeepOpen bool    `cbor:"keep_open"`
	Suspend  bool    `cbor:"suspend"` // after a refused write all are, until "resume-writing"
	Idle     int64   `cbor:"idle"`    // ns
	Write    int64   `cbor:"write"`   // ns
	Frame    int64   `cbor:"frame"`   // ns
	Connect  int64   `cbor:"connect"` // ns
	Delay    bool    `cbor:"delay"`   // Nagle's algorithm
	Alive    int64   `cbor:"alive"`   // ns between two probes; negative: none
}

// Defaults of a connection, and what [Grant] does not bound.
const (
	DefaultWindow   = 64 << 10
	MinWindow       = 1 << 10
	DefaultIdle     = 5 * time.Minute
	DefaultWrite    = 30 * time.Second
	DefaultFrameIn  = 30 * time.Second
	DefaultConnect  = 10 * time.Second
	RegisterTimeout = 5 * time.Second
	maxTime         = 24 * time.Hour
	minAlive        = time.Second
)

func (o *options) check(g *Grant) error {
	if err := o.Framing.check(); err != nil {
		return err
	}
	if o.Window == 0 {
		o.Window = min(DefaultWindow, uint64(g.Window))
	}
	if o.Window < MinWindow || o.Window > uint64(g.Window) {
		return service.Errorf(service.TooLarge, "window is %d to %d bytes; window of the grant raises it", MinWindow, g.Window)
	}
	for _, t := range []struct {
		of       *int64
		fallback time.Duration
		name     string
	}{{&o.Idle, g.Idle, "idle"}, {&o.Write, DefaultWrite, "write"}, {&o.Frame, DefaultFrameIn, "frame"}, {&o.Connect, DefaultConnect, "connect"}} {
		if *t.of == 0 {
			*t.of = int64(t.fallback)
		}
		if d := time.Duration(*t.of); d < time.Millisecond || d > maxTime {
			return service.Errorf(service.BadRequest, "%s is 1ms to %v", t.name, maxTime)
		}
	}
	if time.Duration(o.Idle) > g.Idle {
		return service.Errorf(service.TooLarge, "idle is at most %v; idle-timeout of the grant raises it", g.Idle)
	}
	if o.Alive > 0 && time.Duration(o.Alive) < minAlive || o.Alive > int64(maxTime) {
		return service.Errorf(service.BadRequest, "alive is %v to %v, or negative", minAlive, maxTime)
	}
	return nil
}

// secured is what a guest says of TLS.
type secured struct {
	Name      string   `cbor:"server_name"` // of a client; default: the host of the address
	Protocols []string `cbor:"alpn"`
}

func (s *secured) check() error {
	if len(s.Protocols) > 16 {
		return service.Errorf(service.BadRequest, "at most 16 protocols")
	}
	for _, p := range s.Protocols {
		if len(p) == 0 || len(p) > 255 {
			return service.Errorf(service.BadRequest, "a protocol has 1 to 255 bytes")
		}
	}
	return nil
}

type connectArgs struct {
	Address string   `cbor:"address"`
	Options options  `cbor:"options"`
	TLS     *secured `cbor:"tls"`
}

type listenArgs struct {
	Address string   `cbor:"address"`
	Options options  `cbor:"options"`
	TLS     *secured `cbor:"tls"`
	Accept  *uint64  `cbor:"accept"` // connections until more are asked for; none: any number
}

// order is what an actor tells a connection: [op, args].
type order struct {
	op    string
	bytes []byte // of write and unknown; valid during the turn
	n     uint64 // of more
	how   string // of close
	ref   abi.Ref
	state []byte
}

var errOrder = service.Errorf(service.BadRequest, `a connection takes ["register", null], ["write", bytes], ["more", bytes], ["suspend", null], ["resume", null], `+
	`["resume-writing", null], ["close", "flush", "half" or "reset"], ["give", ref], ["state", any] and ["unknown", bytes]`)

// maxState bounds what a connection remembers for its actor, in bytes.
const maxState = 4 << 10

func readOrder(payload []byte) (o order, err error) {
	r := abi.NewReader(payload)
	if r.Array() != 2 || r.Peek() != abi.TypeText {
		return o, errOrder
	}
	switch o.op = string(r.TextBytes()); o.op {
	case "write", "unknown":
		o.bytes = r.ByteString()
	case "more":
		o.n = r.Uint()
	case "register", "suspend", "resume", "resume-writing":
		r.Null()
	case "close":
		o.how = r.Text()
		if o.how != "flush" && o.how != "half" && o.how != "reset" {
			return o, errOrder
		}
	case "give":
		o.ref = r.Ref()
	case "state":
		o.state = append([]byte(nil), r.Raw()...)
	default:
		return o, errOrder
	}
	if r.Done() != nil {
		return o, errOrder
	}
	if len(o.state) > maxState {
		return o, service.Errorf(service.TooLarge, "the state of a connection has at most %d bytes", maxState)
	}
	return o, nil
}

// headRoom is what stands before the bytes in a message of data.
const headRoom = 1 + 1 + len(Data) + 5

// dataMessage is [Data, bytes] of n bytes behind the head room of a buffer.
func dataMessage(buf []byte, n int) host.Raw {
	var head [headRoom]byte
	h := append(head[:0], 0x82, 0x60|byte(len(Data)))
	h = abi.AppendBytesHead(append(h, Data...), n)
	from := headRoom - len(h)
	copy(buf[from:], h)
	return host.Raw(buf[from : headRoom+n])
}

// simple is [word, null].
func simple(word string) host.Raw {
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text(word)
	w.Null()
	return w.Bytes()
}

// endMessage is [word, {"how", "error"}].
func endMessage(word, how, text string) host.Raw {
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text(word)
	n := 0
	if how != "" {
		n++
	}
	if text != "" {
		n++
	}
	w.Map(n)
	if how != "" {
		w.Text("how")
		w.Text(how)
	}
	if text != "" {
		w.Text("error")
		w.Text(text)
	}
	return w.Bytes()
}

// refusedMessage is [Refused, {"op", "bytes", "error"}].
func refusedMessage(o *order, err error) host.Raw {
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text(Refused)
	w.Map(3)
	w.Text("op")
	w.Text(o.op)
	w.Text("bytes")
	w.Uint(uint64(len(o.bytes)))
	w.Text("error")
	w.Text(err.Error())
	return w.Bytes()
}
