package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// identity is what gives the bytes of a snapshot their meaning. Limits, the machine, the version of the host and the way in
// which code runs and memory is held do not belong to it: a state may go on under others.
type identity struct {
	module      [sha256.Size]byte // the module as it was given
	environment [sha256.Size]byte // variables, and the directories as the guest sees them
	frozen      [sha256.Size]byte // the memory that instances begin with, its rings, and how many globals the guest can change
}

const identityBytes = 3 * sha256.Size

func (d *identity) append(dst []byte) []byte {
	dst = append(dst, d.module[:]...)
	dst = append(dst, d.environment[:]...)
	return append(dst, d.frozen[:]...)
}

func readIdentity(b []byte) (d identity) {
	const n = sha256.Size
	copy(d.module[:], b)
	copy(d.environment[:], b[n:])
	copy(d.frozen[:], b[2*n:])
	return d
}

// differs names what of a stored identity is not the image's, empty if nothing is. Another module has another frozen
// memory, so only the first difference is named.
func (d *identity) differs(stored identity) string {
	switch {
	case stored.module != d.module:
		return "it is of another module"
	case stored.environment != d.environment:
		return "it is of the same module in another environment"
	case stored.frozen != d.frozen:
		return "it is of the same module with another frozen memory: its initialisation has led to something else"
	}
	return ""
}

var errNoIdentity = errors.New("the image is closed")

// identify computes the identity once: it reads the frozen memory, which takes about a millisecond for each MiB.
func (i *Image) identify() (*identity, error) {
	if !i.ref() {
		return nil, errNoIdentity
	}
	defer i.unref()
	i.identityOnce.Do(func() {
		d := identity{module: i.sum, environment: i.cfg.environment()}
		h := sha256.New()
		memory := i.memory.Digest()
		h.Write(memory[:])
		c := &i.control
		for _, n := range [...]uint32{c.Inbox, c.InboxCap, c.Outbox, c.OutboxCap, uint32(i.mutable)} {
			var word [4]byte
			binary.LittleEndian.PutUint32(word[:], n)
			h.Write(word[:])
		}
		d.frozen = [sha256.Size]byte(h.Sum(nil))
		i.identity = d
	})
	return &i.identity, nil
}

// environment identifies what a guest can see of the world besides its messages. Where the host keeps a directory is not
// visible.
func (c *ImageConfig) environment() [sha256.Size]byte {
	h := sha256.New()
	add := func(kind byte, text string) {
		h.Write(binary.LittleEndian.AppendUint64([]byte{kind}, uint64(len(text))))
		h.Write([]byte(text))
	}
	for _, kv := range c.Env {
		add('e', kv)
	}
	for _, d := range c.Dirs {
		add('d', d.Guest)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Fingerprint identifies what gives the bytes of a snapshot their meaning: images with the same one can go on from each
// other's states.
func Fingerprint(i *Image) ([sha256.Size]byte, error) {
	d, err := i.identify()
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(d.append(nil)), nil
}

// Identity is the three hashes that give the bytes of a snapshot their meaning: of the module, of its environment and of the
// memory that instances begin with. The last two are zero for an image that is not frozen.
func Identity(i *Image) (b [identityBytes]byte, err error) {
	if !i.frozen {
		copy(b[:], i.sum[:])
		return b, nil
	}
	d, err := i.identify()
	if err != nil {
		return b, err
	}
	d.append(b[:0])
	return b, nil
}

// Identifies reports whether bytes are an identity, and the fingerprint is its hash.
func Identifies(identity, fingerprint []byte) bool {
	if len(identity) != identityBytes {
		return false
	}
	sum := sha256.Sum256(identity)
	return bytes.Equal(sum[:], fingerprint)
}

// IdentityOf reports whether an identity is that of an image of the module.
func IdentityOf(identity, module []byte) bool {
	if len(identity) != identityBytes {
		return false
	}
	d := readIdentity(identity)
	return d.module == sha256.Sum256(module)
}

// ConfigOf is what the image was loaded with, with its defaults filled in. Its slices must not be changed.
func ConfigOf(i *Image) ImageConfig { return i.cfg }

// ModuleSum is SHA-256 of the image's module.
func ModuleSum(i *Image) [sha256.Size]byte { return i.sum }
