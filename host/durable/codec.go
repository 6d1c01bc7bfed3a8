package durable

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// A record of the log is compact (see compact.go), or it is a version, a tag and what the tag says: CBOR for most. Stores of
// earlier releases have no compact records.
const version = 1

// laterVersion is that of records without which releases that do not know them cannot go on.
const laterVersion = 2

// The tags. They never change their meaning.
const (
	tagActor  = 1 // record.Record: something that an actor has taken in; this release writes compact ones instead
	tagForget = 2 // forgotten: the state of an actor is not needed any more
)

// forgotten is an actor below /user whose lives until here are as if they had not been.
type forgotten struct {
	Path string `cbor:"1,keyasint"` // with scheme and system
}

// ErrRecord wraps the reason why bytes are no record of a store.
var ErrRecord = errors.New("not a record of a store")

var encoder, decoder = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.EncOptions{Sort: cbor.SortNone, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden}.EncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 8, MaxArrayElements: 1 << 24, MaxMapPairs: 64,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}()

// encode is a record as it is in the log.
func encode(tag byte, v any) ([]byte, error) {
	b, err := encoder.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte{version, tag}, b...), nil
}

// decode is the inverse of encode: a *record.Record, a *record.Probation or a *forgotten, which share nothing with b. What it returns is checked
// as far as a record can be without those before it.
func decode(b []byte) (any, error) {
	no := func(format string, args ...any) (any, error) {
		return nil, fmt.Errorf("%w: %s", ErrRecord, fmt.Sprintf(format, args...))
	}
	switch {
	case len(b) < 2:
		return no("%d bytes", len(b))
	case b[0] == laterVersion:
		if e, ok := decodeEnded(b); ok {
			return e, nil
		}
		return no("a record of version %d with tag %d and %d bytes", b[0], b[1], len(b))
	case b[0] != version:
		return no("version %d, this release reads versions %d and %d", b[0], version, laterVersion)
	}
	switch b[1] {
	case tagMark, tagPiece, tagDone, tagKept:
		if v, ok := decodeCheckpoint(b); ok {
			return v, nil
		}
		return no("a part of a checkpoint of %d bytes", len(b))
	case tagEvents, tagIndexed:
		if v, ok := decodeEvents(b); ok {
			return v, nil
		}
		return no("a record of events of %d bytes", len(b))
	case tagActor:
		r := &record.Record{}
		if err := decoder.Unmarshal(b[2:], r); err != nil {
			return no("%v", err)
		}
		if why := wrong(r); why != "" {
			return no("%s", why)
		}
		return r, nil
	case tagProbation:
		p, err := decodeProbation(b[2:])
		if err != nil {
			return no("%v", err)
		}
		return p, nil
	case tagForget:
		f := &forgotten{}
		if err := decoder.Unmarshal(b[2:], f); err != nil {
			return no("%v", err)
		}
		if f.Path == "" || len(f.Path) > abi.MaxPath {
			return no("it forgets an actor without a path")
		}
		return f, nil
	}
	return no("tag %d", b[1])
}

// wrong says what no recorder would tell.
func wrong(r *record.Record) string {
	has := [...]bool{r.Life != nil, r.Message != nil, r.Signal != nil, r.Entry != nil, r.Exchange != nil, r.Decision != nil}
	want := map[record.Kind]int{
		record.Began: 0, record.Restarted: 0, record.Ended: 0, record.Changed: 0, record.Accepted: 1, record.Refused: 1, record.Took: 2, record.Turned: 3,
		record.Exchanged: 4, record.Decided: 5,
	}
	i, ok := want[r.Kind]
	if !ok {
		return fmt.Sprintf("kind %d", r.Kind)
	}
	for k := range has {
		if has[k] != (k == i) {
			return "it has not what a record of its kind has"
		}
	}
	switch {
	case r.Actor == 0:
		return "it is about nobody"
	case r.Life != nil && (r.Life.Path == "" || len(r.Life.Path) > abi.MaxPath):
		return "a life without a path"
	case r.Kind == record.Accepted && r.Message.Position == 0:
		return "a message without a position"
	case r.Kind == record.Refused && (r.Message.Position != 0 || len(r.Message.Payload) != 4):
		return "a refusal of more than a message"
	case r.Life != nil && r.Life.Limits == nil && (r.Kind == record.Changed || r.Life.Rules != nil):
		return "a change of nothing, or rules without limits"
	case r.Life != nil && r.Life.Rules != nil:
		return r.Life.Rules.Wrong()
	case r.Exchange != nil:
		return r.Exchange.Wrong()
	case r.Decision != nil:
		return r.Decision.Wrong()
	case r.Entry != nil && (r.Entry.Done < 0 || r.Entry.Done > max(1, len(r.Entry.Mail)) || r.Entry.Ended > record.ByFailure):
		return "an entry with other turns than messages"
	}
	return ""
}
