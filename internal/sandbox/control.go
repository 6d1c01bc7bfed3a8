package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
)

// Bounds of the rings, in bytes.
const (
	controlSize = 8 * 4
)

// control is a guest's control block: where its rings and its description are.
// It is read once and checked; the guest cannot change it afterwards.
type control struct {
	Inbox, InboxCap   uint32
	Outbox, OutboxCap uint32
	Text, TextLen     uint32 // the description, or 0
}

// readControl reads the block at ptr. Errors name what is wrong.
func readControl(mem []byte, ptr uint32) (c control, err error) {
	raw, ok := section(mem, ptr, controlSize)
	if !ok {
		return c, fmt.Errorf("the control block at %#x lies outside of the memory of %d bytes", ptr, len(mem))
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[4*i:]) }
	if v := word(0); v != abi.Version {
		return c, fmt.Errorf("the module speaks ABI version %d, this host version %d", v, abi.Version)
	}
	if v := word(7); v != 0 {
		return c, fmt.Errorf("the control block has unknown flags: %#x", v)
	}
	c = control{Inbox: word(1), InboxCap: word(2), Outbox: word(3), OutboxCap: word(4), Text: word(5), TextLen: word(6)}
	return c, c.check(mem)
}

// check reports rings that lie outside of the memory, overlap or have a wrong size.
func (c *control) check(mem []byte) error {
	if err := checkRing(mem, "inbox", c.Inbox, c.InboxCap); err != nil {
		return err
	}
	if err := checkRing(mem, "outbox", c.Outbox, c.OutboxCap); err != nil {
		return err
	}
	in, out := uint64(c.Inbox), uint64(c.Outbox)
	if in < out+uint64(c.OutboxCap) && out < in+uint64(c.InboxCap) {
		return errors.New("the inbox and the outbox overlap")
	}
	return nil
}

func ringSize(n uint32) bool { return abi.MinRing <= n && n <= abi.MaxRing }

func checkRing(mem []byte, name string, ptr, size uint32) error {
	if !ringSize(size) {
		return fmt.Errorf("the %s has %d bytes; %d to %d are allowed", name, size, abi.MinRing, abi.MaxRing)
	}
	if _, ok := section(mem, ptr, size); !ok {
		return fmt.Errorf("the %s (%d bytes at %#x) lies outside of the memory of %d bytes", name, size, ptr, len(mem))
	}
	return nil
}

// section is mem[ptr:ptr+size], if that exists.
func section(mem []byte, ptr, size uint32) ([]byte, bool) {
	end := uint64(ptr) + uint64(size)
	if end > uint64(len(mem)) {
		return nil, false
	}
	return mem[ptr:end:end], true
}

// describe reads the module's description: the custom section, or what the
// control block points at.
func describe(custom []byte, hasCustom bool, mem []byte, c control) (abi.Description, error) {
	var d abi.Description
	raw, where := custom, `the custom section "`+abi.Section+`"`
	if !hasCustom {
		where = "the description in the control block"
		if c.Text == 0 && c.TextLen == 0 {
			return d, errors.New(`the module does not describe itself: neither a custom section "` + abi.Section + `" nor a description in its control block`)
		}
		var ok bool
		if raw, ok = section(mem, c.Text, c.TextLen); !ok {
			return d, fmt.Errorf("%s (%d bytes at %#x) lies outside of the memory", where, c.TextLen, c.Text)
		}
	}
	if len(raw) > abi.MaxDescription {
		return d, fmt.Errorf("%s has %d bytes, more than %d", where, len(raw), abi.MaxDescription)
	}
	if err := abi.DecodeDescription(&d, raw); err != nil {
		return d, fmt.Errorf("%s is malformed: %w", where, err)
	}
	if d.ABI != abi.Version {
		return d, fmt.Errorf("the module describes itself as ABI version %d, this host speaks version %d", d.ABI, abi.Version)
	}
	if feature := d.Lacks(); feature != "" {
		return d, fmt.Errorf("the module needs the feature %q, which this host does not have", feature)
	}
	return d, nil
}
