// Package secret derives the refs, the randomness and the jitter of a system from one secret.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/wasmactors/wasmactors/abi"
)

// Secret is the source of all refs, of the randomness of all actors and of the jitter of all delays of a system. Knowing it
// is enough to compute every ref, so protect it like a password. See [System.Secret].
type Secret [32]byte

// New makes a random secret, from the operating system.
func New() *Secret {
	var s Secret
	_, _ = rand.Read(s[:]) // never fails
	return &s
}

// Of derives the secret from a seed. The seed can be found from it only by
// trying all seeds.
func Of(seed uint64) *Secret {
	s := Secret(sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("wasmactors seed\x00"), seed)))
	return &s
}

// Purpose distinguishes values that are derived for one actor.
type Purpose uint8

const (
	ForOwnChildren Purpose = iota + 1 // the key of the refs of children that the host starts below it
	ForGuardians                      // the key of the refs of /user and /system
	forAsks                           // the key of the refs of asks from Go
	ForGuest                          // what a guest gets to know, an incarnation; see guest
	ForUnfrozen                       // what an image that is not frozen draws at its initialisation, an incarnation
	ForJitter                         // of the delays before restarts of children
	ForReports                        // what reports of failures are called
	ForProcess                        // the secret of what begins anew in each process, an epoch
	ForNamed                          // the keys of the refs of actors below a guardian, by name
	ForRetries                        // idempotency keys, and the jitter between attempts
	ForRegions                        // the key of a region of a cluster, which Go code of its process has
	ForTokens                         // the tokens of such a region, which other nodes get; n counts them
	forEffects                        // the keys of what an actor asks services, by number
)

// Derive is a value for one purpose of one actor; n distinguishes several. It is the one-step
// key derivation of NIST SP 800-56C with SHA-256: no number of values reveals the secret or
// another value. All inputs have the same length, which fits one block, so that a
// value costs about as much as a map access.
func (s *Secret) Derive(p Purpose, of abi.Ref, n uint64) [sha256.Size]byte {
	var in [4 + len(Secret{}) + 1 + 8 + 8]byte
	in[3] = 1 // the counter of SP 800-56C
	copy(in[4:], s[:])
	in[36] = byte(p)
	binary.LittleEndian.PutUint64(in[37:], uint64(of))
	binary.LittleEndian.PutUint64(in[45:], n)
	return sha256.Sum256(in[:])
}

// RefKey is a derived key of refs.
func (s *Secret) RefKey(p Purpose, of abi.Ref) abi.RefKey {
	v := s.Derive(p, of, 0)
	return abi.RefKey(v[:abi.RefKeySize])
}

// AskKey is the key of the refs of asks from Go, of an epoch.
func (s *Secret) AskKey(epoch uint64) abi.RefKey {
	v := s.Derive(forAsks, 0, epoch)
	return abi.RefKey(v[:abi.RefKeySize])
}

// Seed is derived randomness for an incarnation of an actor.
func (s *Secret) Seed(p Purpose, of abi.Ref, incarnation uint64) [abi.SeedSize]byte {
	v := s.Derive(p, of, incarnation)
	return [abi.SeedSize]byte(v[:abi.SeedSize])
}

// Guest is what a guest gets to know: the seed of an incarnation's randomness, and the key of
// the refs of its children. One derivation yields both; the key stays that of the first
// incarnation.
func (s *Secret) Guest(of abi.Ref, incarnation uint64) (seed [abi.SeedSize]byte, first abi.RefKey) {
	v := s.Derive(ForGuest, of, incarnation)
	return [abi.SeedSize]byte(v[:abi.SeedSize]), abi.RefKey(v[abi.SeedSize:])
}

// Effect is the key of what an actor asks of a service: its request of this number, in a turn at a time in ns since 1970. The time
// tells it from another one of the same number, where the end of a log was lost, or a copy goes on from an earlier state.
func (s *Secret) Effect(of abi.Ref, number uint64, at int64) [16]byte {
	key := s.Derive(forEffects, of, number)
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(key[:], uint64(at)))
	return [16]byte(sum[:16])
}
