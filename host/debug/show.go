package debug

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Bounds of what is shown.
const (
	mostFrames   = 100
	mostShown    = 64 << 10 // bytes of memory
	mostCommands = 200
	mostRanges   = 200
	mostPayload  = 1000
)

// Result is what a command has led to. What it does not have is empty.
type Result struct {
	Command string    `json:"command"`
	At      Place     `json:"at"`
	Frame   *Frame    `json:"frame,omitempty"`
	Caller  *Frame    `json:"caller,omitempty"`
	Failure string    `json:"failure,omitempty"`
	Log     string    `json:"log,omitempty"`
	Stack   []Frame   `json:"stack,omitempty"`
	Trace   string    `json:"trace,omitempty"` // of goroutines, as the guest has written it when it failed
	Globals []Global  `json:"globals,omitempty"`
	Memory  *Memory   `json:"memory,omitempty"`
	Message string    `json:"message,omitempty"`
	Sent    []Sent    `json:"commands,omitempty"`
	Ranges  []Range   `json:"differences,omitempty"`
	More    int       `json:"more,omitempty"` // that are not listed
	Write   *Write    `json:"write,omitempty"`
	Note    string    `json:"note,omitempty"`
	Help    []Command `json:"-"`
}

// Global is a mutable global of the guest.
type Global struct {
	Number int    `json:"number"` // of the mutable ones
	Name   string `json:"name,omitempty"`
	Bits   uint64 `json:"bits"`
}

// Memory is a part of the guest's memory.
type Memory struct {
	Address uint64 `json:"address"`
	Hex     string `json:"hex"`
}

// Sent is a command of a turn.
type Sent struct {
	Op      string `json:"op"`
	To      string `json:"to,omitempty"`
	Payload string `json:"payload,omitempty"` // CBOR's diagnostic notation
}

// Range is a part of the memory that differs.
type Range struct {
	Address uint64 `json:"address"`
	Length  int    `json:"length"`
	Before  string `json:"before"` // hexadecimal, the first bytes
	After   string `json:"after"`
}

// String is the result as a terminal shows it: whole lines.
func (r *Result) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, c := range r.Help {
		line("%-32s %s", strings.TrimSpace(strings.Join(c.Names, ", ")+" "+c.Args), c.Help)
	}
	if r.Log != "" {
		line("log %s", r.Log)
	}
	if r.Write != nil {
		line("%s", r.Write)
	}
	switch {
	case r.Frame != nil:
		line("%s  %s", r.At, r.Frame)
		if r.Caller != nil {
			line("    called from  %s", r.Caller)
		}
	case len(r.Stack) == 0 && r.Memory == nil && r.Globals == nil && r.Sent == nil && r.Help == nil && r.Message == "" && r.Ranges == nil:
		line("%s", r.At)
	}
	if r.Failure != "" {
		line("    %s", printable.Line(r.Failure, mostLine))
	}
	for k := range r.Stack {
		line("#%-3d %s", k, &r.Stack[k])
	}
	if r.Trace != "" {
		line("%s", printable.Text(r.Trace))
	}
	for _, g := range r.Globals {
		line("%3d  %-8s %#x", g.Number, printable.Line(g.Name, mostLine), g.Bits)
	}
	if r.Memory != nil {
		b.WriteString(dump(r.Memory))
	}
	if r.Message != "" {
		line("%s", printable.Line(r.Message, mostLine))
	}
	for _, s := range r.Sent {
		line("%s %s %s", s.Op, printable.Line(s.To, mostLine), printable.Line(s.Payload, mostLine))
	}
	for _, x := range r.Ranges {
		line("%#08x %6d bytes  %s -> %s", x.Address, x.Length, x.Before, x.After)
	}
	if r.More > 0 {
		line("and %d more", r.More)
	}
	if r.Note != "" {
		line("%s", printable.Line(r.Note, mostLine))
	}
	return b.String()
}

func dump(m *Memory) string {
	data, _ := hex.DecodeString(m.Hex)
	var b strings.Builder
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		text := make([]byte, len(row))
		for k, c := range row {
			if text[k] = '.'; c >= ' ' && c < 0x7f {
				text[k] = c
			}
		}
		fmt.Fprintf(&b, "%08x  %-47s  %s\n", m.Address+uint64(at), fmt.Sprintf("% x", row), text)
	}
	return b.String()
}

// memory is the guest's memory at the present place.
func (d *Debugger) memory() []byte {
	if v := d.endView(); v != nil {
		return v.memory
	}
	return d.x.Memory()
}

func (d *Debugger) globals() ([]uint64, error) {
	if v := d.endView(); v != nil {
		return v.globals, nil
	}
	return sandbox.Globals(d.x)
}

// Memory is a copy of the guest's memory at the present place.
func (d *Debugger) Memory(ctx context.Context) ([]byte, error) {
	if err := d.ensure(ctx); err != nil {
		return nil, err
	}
	return append([]byte(nil), d.memory()...), nil
}

// At is the present place.
func (d *Debugger) At() Place { return d.at }

// goGlobals are the names of the globals of Go's ports to wasm, in order.
var goGlobals = [...]string{"SP", "CTXT", "g", "RET0", "RET1", "RET2", "RET3", "PAUSE"}

func (d *Debugger) doGlobals(ctx context.Context, args []string, r *Result) error {
	err := none(args)
	if err == nil {
		err = d.ensure(ctx)
	}
	if err != nil {
		return err
	}
	bits, err := d.globals()
	if err != nil {
		return err
	}
	r.Globals = []Global{}
	for k, v := range bits {
		g := Global{Number: k, Bits: v}
		if d.lines.FromGo() && k < len(goGlobals) {
			g.Name = goGlobals[k]
		}
		r.Globals = append(r.Globals, g)
	}
	return nil
}

// span reads ADDRESS[:LENGTH].
func (d *Debugger) span(args []string, usual uint64) (at, length uint64, err error) {
	text, err := one(args, "ADDRESS[:LENGTH]")
	if err != nil {
		return 0, 0, err
	}
	name, size, has := strings.Cut(text, ":")
	length = usual
	if has {
		if length, err = strconv.ParseUint(size, 0, 32); err != nil || length == 0 || length > mostShown {
			return 0, 0, fmt.Errorf("%q is no length from 1 to %d", clip(size), mostShown)
		}
	}
	name, plus, has := strings.Cut(name, "+")
	if at, err = strconv.ParseUint(name, 0, 32); err != nil {
		symbol, ok := d.symbols.addresses[name]
		if !ok {
			return 0, 0, fmt.Errorf("%q is neither an address nor a symbol that the module exports", clip(name))
		}
		at = symbol
	}
	if has {
		offset, err := strconv.ParseUint(plus, 0, 32)
		if err != nil {
			return 0, 0, fmt.Errorf("%q is not a number", clip(plus))
		}
		at += offset
	}
	if size := uint64(len(d.memory())); at+length > size {
		return 0, 0, fmt.Errorf("%#x:%d lies outside of the memory of %#x bytes", at, length, size)
	}
	return at, length, nil
}

func (d *Debugger) doMemory(ctx context.Context, args []string, r *Result) error {
	if err := d.ensure(ctx); err != nil {
		return err
	}
	at, length, err := d.span(args, 64)
	if err != nil {
		return err
	}
	r.Memory = &Memory{at, hex.EncodeToString(d.memory()[at : at+length])}
	return nil
}

func (d *Debugger) doMessage(_ context.Context, args []string, r *Result) error {
	if err := none(args); err != nil {
		return err
	}
	e, _ := d.load(d.find(d.at.Turn))
	n := e.First
	e.Mail(func(env *abi.Envelope) bool {
		if n == d.at.Turn {
			r.Message = fmt.Sprintf("%s from %016x: %s", env.Kind, uint64(env.Sender), payload(env.Payload))
		}
		n++
		return r.Message == ""
	})
	return nil
}

// payload is CBOR's diagnostic notation, or how many bytes it has.
func payload(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) <= mostPayload {
		if text, err := cbor.Diagnose(b); err == nil {
			return printable.Line(text, mostLine)
		}
	}
	return fmt.Sprintf("%d bytes", len(b))
}

// doCommands decodes what the turn has written so far. Behind what is left of commands that were flushed there may be older ones.
func (d *Debugger) doCommands(ctx context.Context, args []string, r *Result) error {
	err := none(args)
	if err == nil {
		err = d.ensure(ctx)
	}
	if err != nil {
		return err
	}
	var written []byte
	if v := d.endView(); v != nil {
		written = v.written
	} else {
		flushed, ring := sandbox.Written(d.x)
		written = append(append(written, flushed...), ring...)
	}
	r.Sent = []Sent{}
	turn := d.load0(d.at.Turn)
	for at := 0; at < len(written); {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, written[at:])
		if err != nil {
			break
		}
		at += n
		switch {
		case c.Op == abi.OpEnd && d.batches:
			turn++
		case c.Op == abi.OpEnd || turn != d.at.Turn:
		case len(r.Sent) == mostCommands:
			r.More++
		default:
			r.Sent = append(r.Sent, sent(&c))
		}
	}
	return nil
}

// load0 is the first turn of the entry that a turn is in.
func (d *Debugger) load0(turn uint64) uint64 {
	e, _ := d.load(d.find(turn))
	return e.First
}

func sent(c *abi.Command) Sent {
	s := Sent{Op: c.Op.String(), Payload: payload(c.Payload)}
	switch {
	case c.ToPath != nil:
		s.To = printable.Line(string(c.ToPath), mostLine)
	case c.ToRef != 0:
		s.To = fmt.Sprintf("%016x", uint64(c.ToRef))
	case c.Ref != 0:
		s.To = fmt.Sprintf("%016x %s", uint64(c.Ref), printable.Line(string(c.Type), mostLine))
	}
	if c.Op == abi.OpFail {
		s.Payload = printable.Line(string(c.Reason), mostLine)
	}
	return s
}

func (d *Debugger) doDiff(ctx context.Context, args []string, r *Result) error {
	if len(args) == 0 || len(args) > 2 {
		return fmt.Errorf("it takes one place or two")
	}
	was := d.at
	places := []Place{was, was}
	for k, text := range args {
		p, err := d.parse(text)
		if err != nil {
			return err
		}
		places[k] = p
	}
	if len(args) == 1 {
		places[1] = was
	}
	var mem [2][]byte
	for k, p := range places {
		err := d.seek(ctx, p)
		if err == nil {
			mem[k], err = d.Memory(ctx)
		}
		if err != nil {
			return err
		}
	}
	r.Ranges, r.More = differences(mem[0], mem[1])
	if err := d.seek(ctx, was); err != nil {
		return err
	}
	return nil
}

// differences are where two memories differ; parts with fewer than 8 equal bytes between them are one.
func differences(a, b []byte) (ranges []Range, more int) {
	ranges = []Range{}
	add := func(from, to int) {
		if len(ranges) == mostRanges {
			more++
			return
		}
		shown := func(m []byte) string { return hex.EncodeToString(m[min(from, len(m)):min(to, from+16, len(m))]) }
		ranges = append(ranges, Range{uint64(from), to - from, shown(a), shown(b)})
	}
	n := min(len(a), len(b))
	const page = 4096
	from, last := -1, 0
	for at := 0; at < n; at++ {
		if at%page == 0 && from < 0 && at+page <= n && string(a[at:at+page]) == string(b[at:at+page]) {
			at += page - 1
			continue
		}
		if a[at] == b[at] {
			if from >= 0 && at-last >= 8 {
				add(from, last+1)
				from = -1
			}
			continue
		}
		if last = at; from < 0 {
			from = at
		}
	}
	if from >= 0 {
		add(from, last+1)
	}
	if len(a) != len(b) {
		add(n, max(len(a), len(b)))
	}
	return ranges, more
}
