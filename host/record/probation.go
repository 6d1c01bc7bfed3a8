package record

import (
	"fmt"
	"time"
)

// Probation is an upgrade (package host/upgrade) whose actors can go back: how far it is. It outlives the process, and goes on in the
// next one.
type Probation struct {
	Module string `cbor:"1,keyasint"` // name of the image
	From   []byte `cbor:"2,keyasint"` // fingerprint of the code before
	To     []byte `cbor:"3,keyasint"` // and of the new code

	Began       int64         `cbor:"4,keyasint"`           // by the system's clock, ns since 1970: no actor has gone over before
	Lasts       time.Duration `cbor:"5,keyasint"`           // how long the new code is watched
	Until       int64         `cbor:"6,keyasint,omitempty"` // when that ends, as Began; 0: actors go over still
	First       bool          `cbor:"7,keyasint,omitempty"` // a part of the actors has gone over, or does, and the others have not
	MaxFailures int           `cbor:"8,keyasint,omitempty"`
	Crashes     int           `cbor:"9,keyasint,omitempty"`  // of the new code
	Back        bool          `cbor:"10,keyasint,omitempty"` // all actors go back
	Over        bool          `cbor:"11,keyasint,omitempty"` // no actor can go back any more
}

// Prober is a recorder that knows of a probation that goes on.
type Prober interface {
	// Probes reports whether an actor can go back that went over to the code with a fingerprint at a time, ns since 1970.
	Probes(code []byte, at int64) bool
}

// mostModuleName bounds a module's name, in bytes.
const mostModuleName = 1 << 10

// Wrong says why p is no probation; empty: it may be one.
func (p *Probation) Wrong() string {
	switch {
	case p.Module == "" || len(p.Module) > mostModuleName:
		return fmt.Sprintf("a probation of a module with a name of %d bytes", len(p.Module))
	case len(p.From) != FingerprintBytes || len(p.To) != FingerprintBytes:
		return "a probation without its code"
	case p.Lasts < 0 || p.MaxFailures < 0 || p.Crashes < 0:
		return "a probation with less than nothing"
	}
	return ""
}
