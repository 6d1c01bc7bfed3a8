package natscluster

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// What a node orders another one to do is signed with the key of its certificate: a message says only which node has sent it, or has handed it
// on, and what is handed on can be made up. The signature is for one start of one node and for one bundle, so nobody else can use it, and only
// that node sees it.

// MaxOrder is how many bytes an order has at most, and MaxSignedOrder how many with its signature.
const (
	MaxOrder       = 4 << 10
	MaxSignedOrder = MaxOrder + maxCertificate + 256
)

// signedOrder is an order as it travels.
type signedOrder struct {
	Certificate []byte `cbor:"1,keyasint"`
	Order       []byte `cbor:"2,keyasint"`
	Signature   []byte `cbor:"3,keyasint"`
}

// digest is what is signed of an order.
func (d *Description) digest(to cluster.Member, bundle string, order []byte) []byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("wasmactors order 1"), []byte(d.ID), []byte(to.Name), binary.BigEndian.AppendUint64(nil, to.ID), []byte(bundle), order} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

// SignOrder signs an order to a node, about a bundle.
func (id *Identity) SignOrder(to cluster.Member, bundle string, order []byte) ([]byte, error) {
	if len(order) > MaxOrder {
		return nil, fmt.Errorf("natscluster: an order of %d bytes, at most %d", len(order), MaxOrder)
	}
	s, err := ecdsa.SignASN1(rand.Reader, id.key, id.digest(to, bundle, order))
	if err != nil {
		return nil, err
	}
	return mustEncode(signedOrder{id.certificate.Raw, order, s}), nil
}

// OpenOrder is an order that another node has signed for this one, self, about a bundle, and who that is. The error says why it must not be
// carried out: it is none, or not for this start of the node, or its signer has no right to the bundle.
func (id *Identity) OpenOrder(self cluster.Member, bundle string, b []byte) (order []byte, by string, err error) {
	var s signedOrder
	if len(b) > MaxSignedOrder || strict.Unmarshal(b, &s) != nil || len(s.Order) > MaxOrder || len(s.Certificate) > maxCertificate {
		return nil, "", errors.New("it is malformed")
	}
	c, err := x509.ParseCertificate(s.Certificate)
	if err != nil {
		return nil, "", errors.New("its certificate is malformed")
	}
	if by, err = nameOf(id.authority, c); err != nil {
		return nil, "", err
	}
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok || !ecdsa.VerifyASN1(key, id.digest(self, bundle, s.Order), s.Signature) {
		return nil, by, fmt.Errorf("node %s has not signed it, or for another node, start or bundle", by)
	}
	if err := rightTo(c, by, bundle); err != nil {
		return nil, by, err
	}
	return s.Order, by, nil
}

// rightTo says why a node has no right to a bundle; nil: it has.
func rightTo(c *x509.Certificate, node, bundle string) error {
	all := bundlesOf(c)
	if len(all) == 0 || slices.Contains(all, bundle) {
		return nil
	}
	return fmt.Errorf("the token of node %s was for bundle %s only, not for %s", node, strings.Join(all, ", "), bundle)
}

// RightTo says why a member has no right to a bundle, by its certificate; nil: it has.
func (id *Identity) RightTo(m cluster.Member, bundle string) error {
	c, err := x509.ParseCertificate(m.Identity)
	if err != nil || len(m.Identity) > maxCertificate {
		return fmt.Errorf("node %s has no certificate", m.Name)
	}
	name, err := nameOf(id.authority, c)
	switch {
	case err != nil:
		return err
	case name != m.Name:
		return fmt.Errorf("the certificate of node %s is that of node %s", m.Name, name)
	}
	return rightTo(c, name, bundle)
}
