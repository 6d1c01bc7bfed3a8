package swap

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// RecordsOf are the records of an exchange, of which the state may take several; none: it is the same state of the same code.
// fingerprint is that of the code; nil: it has been closed meanwhile.
func RecordsOf(to *Code, fingerprint []byte) (all []record.Exchange, err error) {
	switch s := to.Saved; {
	case to.Same:
		return nil, nil
	case fingerprint == nil:
		return nil, errors.New("its code has been closed")
	case s != nil:
		return []record.Exchange{{Code: fingerprint, Way: record.Loaded, Version: s.Version, Saved: s.Payload, Own: s.Own, Fuel: to.Fuel}}, nil
	}
	b, err := sandbox.AppendSnapshot(nil, to.Image, to.State)
	if err == nil && len(b) > record.MostStates {
		err = fmt.Errorf("its state has %d bytes, of which at most %d are recorded", len(b), record.MostStates)
	}
	if err == nil {
		all = inParts(fingerprint, record.Pack(b))
	}
	return all, err
}

// inParts are the records of a packed state.
func inParts(fingerprint, packed []byte) (all []record.Exchange) {
	for len(packed) > 0 {
		n := min(len(packed), Part)
		all = append(all, record.Exchange{Code: fingerprint, Way: record.Copied, State: packed[:n], Part: uint64(len(all)), More: n < len(packed)})
		packed = packed[n:]
	}
	return all
}

// Admit asks a recorder whether it has room for the records of an exchange, for each and for all of them.
func Admit(g record.Gate, all []record.Exchange) error {
	sum := int64(0)
	for i := range all {
		n := len(all[i].Saved) + len(all[i].Own) + len(all[i].State)
		if err := g.Admit(n); err != nil {
			return err
		}
		sum += int64(n)
	}
	return g.AdmitAll(sum)
}

// Partial are the parts of a packed state that have come. The zero value is none.
type Partial struct {
	parts uint64
	bytes []byte
}

// Add adds the part that a record has. A first part begins anew: the process that had written those before was killed between two. more
// says that further parts are to come.
func (p *Partial) Add(x *record.Exchange) (more bool, err error) {
	if x.Part == 0 {
		*p = Partial{}
	}
	p.parts, p.bytes = p.parts+1, append(p.bytes, x.State...)
	switch {
	case x.Part != p.parts-1:
		return false, fmt.Errorf("part %d of its state is the part %d that is there", x.Part, p.parts-1)
	case len(p.bytes) > record.MostStates:
		return false, errors.New("its state has more bytes than are recorded")
	}
	return x.More, nil
}

// State is the state of an image that all the parts are.
func (p *Partial) State(image *sandbox.Image) (*sandbox.Snapshot, error) {
	b, err := record.Unpack(p.bytes)
	if err != nil {
		return nil, err
	}
	return sandbox.DecodeSnapshot(image, b, 0)
}
