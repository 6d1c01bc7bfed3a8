package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// The protocol between the two processes: frames of a kind, a length and a body.
const (
	frameRequest  = 'q'
	frameModule   = 'm' // as given; in an answer, the rewritten one
	frameStage    = 's' // what is done now, for Progress
	frameInitTime = 't' // of the initialisation, in ns
	frameRecord   = 'r'
	frameCode     = 'c'
	frameFailure  = 'f'
	frameEnd      = '.'
)

// errProtocol is an answer that breaks the protocol.
var errProtocol = errors.New("malformed answer")

const (
	maxStages  = 16
	maxFailure = 1 << 20
)

func writeFrame(w io.Writer, kind byte, body []byte) error {
	var head [9]byte
	head[0] = kind
	binary.LittleEndian.PutUint64(head[1:], uint64(len(body)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// readFrame reads a frame of at most most bytes. Memory is allocated as bytes arrive, not by the
// length that was announced.
func readFrame(r io.Reader, most uint64) (kind byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint64(head[1:])
	if n > most {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errProtocol, n)
	}
	const atOnce = 16 << 20
	if n <= atOnce {
		body = make([]byte, n)
		_, err = io.ReadFull(r, body)
		return head[0], body, err
	}
	var b bytes.Buffer
	if _, err = io.CopyN(&b, r, int64(n)); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return head[0], b.Bytes(), err
}

// readProduct reads the answer to a job and checks it. All of it together is no
// larger than the memory that the process may have.
func readProduct(r io.Reader, i *Image, j job) (p *product, failed, err error) {
	p = &product{}
	left := j.limits.Memory
	var module, rec []byte
	var took time.Duration
	for stages := 0; ; {
		kind, body, err := readFrame(r, left)
		if err != nil {
			return nil, nil, err
		}
		left -= uint64(len(body))
		switch kind {
		case frameStage:
			if stages++; stages > maxStages || !knownStage(string(body)) {
				return nil, nil, fmt.Errorf("%w: a stage", errProtocol)
			}
			i.cfg.progress(string(body))
		case frameInitTime:
			if len(body) != 8 {
				return nil, nil, fmt.Errorf("%w: a time", errProtocol)
			}
			took = max(0, time.Duration(binary.LittleEndian.Uint64(body)))
		case frameModule:
			module = body
		case frameRecord:
			rec = body
		case frameCode:
			p.code = body
		case frameFailure:
			return nil, readFailure(i.cfg.Name, body), nil
		case frameEnd:
			if j.build {
				if p.rec, err = i.cfg.checkRecord(rec, module); err != nil {
					return nil, nil, fmt.Errorf("%w: %w", errProtocol, err)
				}
				p.rec.initTime = took
			}
			return p, nil, nil
		default:
			return nil, nil, fmt.Errorf("%w: a frame of kind %q", errProtocol, kind)
		}
	}
}

func knownStage(s string) bool { return s == "decode" || s == "initialise" || s == "compile" }

// readFailure decodes the error that a process has reported.
func readFailure(name string, body []byte) error {
	var f processFailure
	if len(body) > maxFailure || json.Unmarshal(body, &f) != nil || f.Reason == "" {
		return fmt.Errorf("%w: %s: %w: a failure", errProcess, name, errProtocol)
	}
	if !f.Blame {
		return fmt.Errorf("%w: %s: %s", errProcess, name, f.Reason)
	}
	e := &LoadError{Name: name, Reason: f.Reason}
	switch {
	case f.Limit != nil:
		e.Err = f.Limit
	case f.Failure != nil:
		f.Failure.Stack = f.Failure.Stack[:min(len(f.Failure.Stack), abi.MaxFrames)]
		e.Err = f.Failure
	default:
		e.Err = errors.New(f.Reason)
	}
	return e
}

// writeFailure is the inverse.
func writeFailure(w io.Writer, err error) error {
	f := processFailure{Reason: err.Error()}
	var load *LoadError
	if errors.As(err, &load) {
		f.Reason, f.Blame = load.Reason, true
		errors.As(err, &f.Limit)
		errors.As(err, &f.Failure)
	}
	body, merr := json.Marshal(&f)
	if merr != nil {
		return merr
	}
	return writeFrame(w, frameFailure, body)
}

// checkRecord checks what another process has made of a hostile module as strictly as the
// module itself: its declarations are within the limits, it imports only what the host
// offers, its memory is not too large, and its rings and description are valid.
func (c *ImageConfig) checkRecord(raw, module []byte) (*record, error) {
	rec, err := decodeRecordWithin(raw, c.MemoryLimit)
	if err != nil {
		return nil, err
	}
	m := &rec.meta
	o, err := wasm.Decode(rec.outline)
	if err != nil {
		return nil, err
	}
	guest, wasi, err := checkImports(o)
	if err != nil {
		return nil, err
	}
	if guest != m.UsesGuest && !m.UsesGuest || wasi != m.UsesWASI && !m.UsesWASI {
		return nil, errors.New("an import is not in the record")
	}
	for _, mem := range o.Memories {
		if rec.memory != nil && uint64(mem.Min) > m.MemoryBytes>>16 {
			return nil, errors.New("the memory is smaller than what the module declares")
		}
	}
	if err := c.checkTables(o); err != nil {
		return nil, err
	}
	var d abi.Description
	if err := abi.DecodeDescription(&d, abi.AppendDescription(nil, &m.Description)); err != nil || d.ABI != abi.Version {
		return nil, errors.New("a malformed description")
	}
	rec.module = module
	m.FrozenBytes = len(module)
	return rec, nil
}

// checkTables checks the sizes of a rewritten module's tables. Its globals and data are not
// checked: the rewriter has added some of its own.
func (c *ImageConfig) checkTables(o *wasm.Module) error {
	for _, t := range o.Tables {
		if t.Min > c.TableLimit {
			return &LimitError{"needs a table of", "table", uint64(t.Min), uint64(c.TableLimit), "entries"}
		}
	}
	return nil
}
