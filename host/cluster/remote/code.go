package remote

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code is what a node does about code that a parent runs on another node and no module here has. Any goroutine may call its methods;
// May and Pin must not block.
type Code interface {
	// May says whose settings code gets from which a child of a type is started, where module is what the parent's node calls it, and how
	// many bytes it may have. The error, which is shown to the parent, says why none is taken.
	May(module, typ string) (as string, most int64, err error)
	// Load checks code of a node that has this digest, and makes it ready: Find finds it from then on, for a while. It may take long.
	Load(ctx context.Context, node uint16, digest []byte, as string, code []byte) error
	// Pin keeps what Find has found until release is called.
	Pin(digest []byte, module, typ string) (release func(), err error)
}

// ErrLacks says that no module here has the code of a child: what [Accept].Find returns then, wrapped.
var ErrLacks = errors.New("no module here has the code that the parent runs")

// Bounds of code that is fetched.
const (
	partSize      = 512 << 10        // bytes of a part
	partTime      = 10 * time.Second // for a part, and for the first word of who has the code
	fetchTime     = time.Minute      // for all parts, and again for the check; also for how long a fetch may wait for others
	stayTime      = 10 * time.Second // for which it is known why code was not taken
	turnTime      = 100 * time.Millisecond
	mostFetching  = 4  // fetches that are under way on a node at a time; one of them for each node
	mostFetches   = 8  // that wait, are under way or have just ended, for each node
	mostWaiting   = 64 // children that wait for one fetch
	mostRequested = 3  // requests for one child to one node
)

// offering is the header of a request whose sender can give the code, and of all that is said about code. Nodes of earlier versions know
// nothing of it, and neither get nor send any of that.
const offering = "wasmactors.remote.code"

// part asks for a part of the code, and is a part of it.
type part struct {
	At   int64  `cbor:"1,keyasint,omitempty"`
	Size int64  `cbor:"2,keyasint,omitempty"` // of all, in bytes
	Code []byte `cbor:"3,keyasint,omitempty"`
}

var errPart = errors.New("remote: a part of the code is malformed")

// decodePart reads a part of another node.
func decodePart(b []byte) (p part, err error) {
	if len(b) > partSize+1<<10 || decoder.Unmarshal(b, &p) != nil || p.At < 0 || p.Size < 0 {
		return part{}, errPart
	}
	return p, nil
}

// join adds a part that was asked for to what is there of code. The size is that of the first part; at most most.
func (p *part) join(code []byte, size *int64, most int64) ([]byte, error) {
	at := int64(len(code))
	switch {
	case at == 0 && (p.Size == 0 || p.Size > most):
		return nil, fmt.Errorf("remote: the code has %d bytes, from 1 to %d are taken", p.Size, most)
	case at > 0 && p.Size != *size, p.At != at, int64(len(p.Code)) != min(partSize, p.Size-at):
		return nil, errPart
	}
	*size = p.Size
	return append(code, p.Code...), nil
}
