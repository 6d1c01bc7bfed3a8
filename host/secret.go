package host

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/wasmactors/wasmactors/abi"
)

// Secret is the source of all refs, of the randomness of all actors and of the jitter of all delays of a system. Knowing it
// is enough to compute every ref, so protect it like a password. See [System.Secret].
type Secret [32]byte

// newSecret makes a random secret, from the operating system.
func newSecret() *Secret {
	var s Secret
	_, _ = rand.Read(s[:]) // never fails
	return &s
}

// secretOf derives the secret from a seed. The seed can be found from it only by
// trying all seeds.
func secretOf(seed uint64) *Secret {
	s := Secret(sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("wasmactors seed\x00"), seed)))
	return &s
}

// purpose distinguishes values that are derived for one actor.
type purpose uint8

const (
	forOwnChildren purpose = iota + 1 // the key of the refs of children that the host starts below it
	forGuardians                      // the key of the refs of /user and /system
	forAsks                           // the key of the refs of asks from Go
	forGuest                          // what a guest gets to know, an incarnation; see guest
	forUnfrozen                       // what an image that is not frozen draws at its initialisation, an incarnation
	forJitter                         // of the delays before restarts of children
	forReports                        // what reports of failures are called
	forProcess                        // the secret of what begins anew in each process, an epoch
	forNamed                          // the keys of the refs of actors below a guardian, by name
	forRetries                        // idempotency keys, and the jitter between attempts
)

// derive is a value for one purpose of one actor; n distinguishes several. It is the one-step
// key derivation of NIST SP 800-56C with SHA-256: no number of values reveals the secret or
// another value. All inputs have the same length, which fits one block, so that a
// value costs about as much as a map access.
func (s *Secret) derive(p purpose, of abi.Ref, n uint64) [sha256.Size]byte {
	var in [4 + len(Secret{}) + 1 + 8 + 8]byte
	in[3] = 1 // the counter of SP 800-56C
	copy(in[4:], s[:])
	in[36] = byte(p)
	binary.LittleEndian.PutUint64(in[37:], uint64(of))
	binary.LittleEndian.PutUint64(in[45:], n)
	return sha256.Sum256(in[:])
}

// refKey is a derived key of refs.
func (s *Secret) refKey(p purpose, of abi.Ref) abi.RefKey {
	v := s.derive(p, of, 0)
	return abi.RefKey(v[:abi.RefKeySize])
}

// askKey is the key of the refs of asks from Go, of an epoch.
func (s *Secret) askKey(epoch uint64) abi.RefKey {
	v := s.derive(forAsks, 0, epoch)
	return abi.RefKey(v[:abi.RefKeySize])
}

// seed is derived randomness for an incarnation of an actor.
func (s *Secret) seed(p purpose, of abi.Ref, incarnation uint64) [abi.SeedSize]byte {
	v := s.derive(p, of, incarnation)
	return [abi.SeedSize]byte(v[:abi.SeedSize])
}

// guest is what a guest gets to know: the seed of an incarnation's randomness, and the key of
// the refs of its children. One derivation yields both; the key stays that of the first
// incarnation.
func (s *Secret) guest(of abi.Ref, incarnation uint64) (seed [abi.SeedSize]byte, first abi.RefKey) {
	v := s.derive(forGuest, of, incarnation)
	return [abi.SeedSize]byte(v[:abi.SeedSize]), abi.RefKey(v[abi.SeedSize:])
}

// Secret is what the system's refs are derived from: with it given to [Config.WithSecret],
// actors that are restored from a snapshot keep their refs and their randomness.
func (s *System) Secret() Secret { return *s.secret }

// nextHostRef is the ref of the next child that the host starts here. Any goroutine may
// call it.
func (a *actor) nextHostRef() abi.Ref {
	key, n := a.super.Family.NextHostRef(func() abi.RefKey { return secretFor(a).refKey(forOwnChildren, a.uid) })
	return abi.ChildRef(key, a.uid.Node(), n)
}
