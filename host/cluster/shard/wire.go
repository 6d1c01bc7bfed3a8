package shard

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Header marks the messages that regions send each other, and orders to them. Whoever else sends it is not believed.
const Header = "wasmactors.shard"

type op uint8

const (
	opLook   op = iota + 1 // to itself: something has changed
	opHanded               // to itself: what waited for a shard is behind
	opOpen                 // feeder to owner: I have messages for the shard
	opOpened               // owner to feeder: send them with this token
	opClose                // owner to feeder: no more with this token
	opSealed               // feeder to owner: nothing comes with this token any more
	opStale                // owner to feeder: the token is not valid
	opTake                 // next owner to owner: hand the shard over
	opBegin                // owner to next owner: that was all, begin
	opReset                // this region has begun anew: tokens between us are void
	opWhose                // to one that may be of another bundle: Token is the mark of this one's
	opOurs                 // its answer: it is of the same one...
	opOther                // ...or of another one, or of none; Token is what it was asked
	opLast   = opOther
)

// order is what regions send each other.
type order struct {
	Op    op     `cbor:"1,keyasint"`
	Shard int    `cbor:"2,keyasint"`
	Epoch uint64 `cbor:"3,keyasint"`
	Token uint64 `cbor:"4,keyasint"`
}

func (o order) message() host.Headed {
	b, err := cbor.Marshal(o)
	if err != nil {
		panic(err) // of numbers
	}
	return host.Headed{Value: host.Raw(b), Headers: map[string]string{Header: "1"}}
}

func decodeOrder(b []byte) (o order, err error) {
	if len(b) > 64 {
		return o, fmt.Errorf("shard: an order of %d bytes", len(b))
	}
	if err := decoder.Unmarshal(b, &o); err != nil {
		return o, err
	}
	if o.Op < opLook || o.Op > opLast || o.Shard < 0 || o.Shard >= MaxShards {
		return o, fmt.Errorf("shard: an order that no region gives")
	}
	return o, nil
}

// tag is what a message is addressed to that one region passes on to another: a name that no actor can have.
type tag struct {
	handed bool // by who has had the shard
	shard  int
	token  uint64
	via    abi.Ref
	name   string
}

func (t tag) String() string {
	b := make([]byte, 0, 64)
	if t.handed {
		b = append(b, 'h')
	} else {
		b = append(b, 'm')
	}
	b = append(strconv.AppendInt(b, int64(t.shard), 16), ':')
	b = append(strconv.AppendUint(b, t.token, 16), ':')
	b = append(strconv.AppendUint(b, uint64(t.via), 16), ':')
	return string(append(b, t.name...))
}

// BetweenRegions reports whether a message is an order of a region, or one that a region passes on to another: not one that somebody sends
// to a key. below is the name below the region that the message is for.
func BetweenRegions(headers []byte, below string) bool {
	if isTag(below) {
		return true
	}
	_, ok := abi.FindHeader(headers, Header)
	return ok
}

func isTag(below string) bool { return strings.IndexByte(below, ':') >= 0 }

func parseTag(below string) (t tag, ok bool) {
	parts := strings.SplitN(below, ":", 4)
	if len(parts) != 4 || parts[0] == "" || parts[0][0] != 'm' && parts[0][0] != 'h' || len(parts[3]) > abi.MaxName || parts[3] == "" {
		return t, false
	}
	s, err1 := strconv.ParseUint(parts[0][1:], 16, 16)
	token, err2 := strconv.ParseUint(parts[1], 16, 64)
	via, err3 := strconv.ParseUint(parts[2], 16, 64)
	t = tag{parts[0][0] == 'h', int(s), token, abi.Ref(via), parts[3]}
	return t, err1 == nil && err2 == nil && err3 == nil && t.String() == below
}

// bufferName is the name in the stash of what waits for a shard at its sender's region.
func bufferName(s int) string { return ":" + strconv.Itoa(s) }
