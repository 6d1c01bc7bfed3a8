package natscluster

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// The authority of a cluster is a key that signs the certificates of its nodes. All keys are of the curve P-256, so that a
// certificate serves TLS and the keys of pairs of nodes alike.

// validity is how long certificates hold. A node that is enrolled again gets a new one.
const validity = 10 * 365 * 24 * time.Hour

// maxCertificate bounds a certificate, in bytes.
const maxCertificate = 1 << 10

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func serial() (*big.Int, error) { return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) }

// newAuthority is a key, and the certificate that it has signed itself.
func newAuthority(cluster string) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	number, err := serial()
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "authority", Organization: []string{cluster}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity + 24*time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	b, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	c, err = x509.ParseCertificate(b)
	return key, c, err
}

// sign is the certificate of a node, which is bound to bundles if there are any.
func sign(authority *ecdsa.PrivateKey, by *x509.Certificate, node string, key *ecdsa.PublicKey, bundles ...string) (*x509.Certificate, error) {
	number, err := serial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: node, Organization: by.Subject.Organization, OrganizationalUnit: bundles},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	b, err := x509.CreateCertificate(rand.Reader, c, by, key, authority)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(b)
}

// Bounds of the bundles that a node is bound to.
const (
	MaxBundles      = 8
	maxBundlesBytes = 512
)

// checkBundles says what is wrong with the names of bundles of a token.
func checkBundles(names []string) error {
	bytes := 0
	for _, name := range names {
		if bytes += len(name); !abi.ValidName([]byte(name)) {
			return fmt.Errorf("%q is no name of a bundle", name)
		}
	}
	if len(names) > MaxBundles || bytes > maxBundlesBytes {
		return fmt.Errorf("%d bundles with %d bytes of names: at most %d with %d", len(names), bytes, MaxBundles, maxBundlesBytes)
	}
	return nil
}

// bundlesOf are the bundles that a certificate is bound to; none: all.
func bundlesOf(c *x509.Certificate) []string { return c.Subject.OrganizationalUnit }

// nameOf is the node that a certificate is of, if the authority has signed it for this cluster.
func nameOf(authority *x509.Certificate, c *x509.Certificate) (string, error) {
	if c.PublicKeyAlgorithm != x509.ECDSA || len(c.Raw) > maxCertificate {
		return "", errors.New("the certificate is none of a node")
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return "", fmt.Errorf("the certificate is of another authority, or has expired: %w", err)
	}
	if c.IsCA || !abi.ValidName([]byte(c.Subject.CommonName)) || !sameOrganization(authority, c) {
		return "", errors.New("the certificate is none of a node of this cluster")
	}
	return c.Subject.CommonName, nil
}

func sameOrganization(a, b *x509.Certificate) bool {
	return len(a.Subject.Organization) == 1 && len(b.Subject.Organization) == 1 && a.Subject.Organization[0] == b.Subject.Organization[0]
}

// publicOf is the key of a certificate, to agree on keys with its node.
func publicOf(c *x509.Certificate) (*ecdh.PublicKey, error) {
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the certificate's key is not of the curve P-256")
	}
	return key.ECDH()
}

// transport is the TLS of connections between nodes. The names of hosts say nothing: whom a certificate is of does. known
// says whether a node may be at the other end; optional takes clients without a certificate, which may only enrol.
func (id *Identity) transport(known func(name string) bool, optional bool) *tls.Config {
	cfg := &tls.Config{
		Certificates:       []tls.Certificate{{Certificate: [][]byte{id.certificate.Raw, id.authority.Raw}, PrivateKey: id.key}},
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // of hosts' names: VerifyConnection checks the certificate
		ClientAuth:         tls.RequireAnyClientCert,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				if optional {
					return nil
				}
				return errors.New("natscluster: no certificate")
			}
			name, err := nameOf(id.authority, s.PeerCertificates[0])
			if err == nil && !known(name) {
				err = fmt.Errorf("node %s may not connect here", name)
			}
			if err != nil {
				return fmt.Errorf("natscluster: %w", err)
			}
			return nil
		},
	}
	if optional {
		cfg.ClientAuth = tls.RequestClientCert
	}
	return cfg
}
