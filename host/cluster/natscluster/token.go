package natscluster

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// A token lets one node of one name join once. It has the authority's public key, so that its holder knows whom it talks to,
// and a proof that only the authority can make. The request is encrypted for the authority, whatever carries it.

// Token is one of them, as text.
type token struct {
	ID        []byte   `cbor:"1,keyasint"` // 12 random bytes
	Node      string   `cbor:"2,keyasint"`
	Until     int64    `cbor:"3,keyasint"` // seconds since 1970
	Proof     []byte   `cbor:"4,keyasint"`
	Cluster   string   `cbor:"5,keyasint"`
	Authority []byte   `cbor:"6,keyasint"` // public key
	Addresses []string `cbor:"7,keyasint,omitempty"`
	URL       string   `cbor:"8,keyasint,omitempty"`
	Bundles   []string `cbor:"9,keyasint,omitempty"` // whose shared entries the node may write; none: all
}

// MaxToken bounds the text of a token, in bytes.
const MaxToken = 4 << 10

const (
	tokenPrefix  = "wat1."
	longestToken = 30 * 24 * time.Hour
	maxEnrol     = 4 << 10
	maxAnswer    = 8 << 10
)

var strict = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: 16, MaxMapPairs: 16, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

func mustEncode(v any) []byte {
	b, err := cbor.Marshal(v)
	if err != nil {
		panic(err) // of numbers, texts and bytes
	}
	return b
}

// proof is what only the authority can say about a token.
func (t *token) proof(authority *ecdsa.PrivateKey) ([]byte, error) {
	secret, err := authority.Bytes()
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "wasmactors token", 32)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	all := []any{t.ID, t.Node, t.Until, t.Cluster}
	if len(t.Bundles) > 0 {
		all = append(all, t.Bundles)
	}
	h.Write(mustEncode(all))
	return h.Sum(nil), nil
}

// Token makes a token with which one node of the name may join once, for as long as valid, at most 30 days. With names of bundles the
// node can write what services share of these only, at most MaxBundles; keepers refuse the rest. A keeper cannot be bound so, nor a node
// of a cluster on a NATS that exists.
func (id *Identity) Token(node string, valid time.Duration, bundles ...string) (string, error) {
	_, keeps := id.keeper(node)
	switch {
	case len(bundles) > 0 && (keeps || id.URL != ""):
		return "", errors.New("natscluster: what a node writes of other bundles is refused by keepers: a keeper, and a node of a cluster on a NATS that exists, cannot be bound to bundles")
	case id.authorityKey == nil:
		return "", errNoAuthority
	case !abi.ValidName([]byte(node)):
		return "", fmt.Errorf("natscluster: %q is no name of a node: use 1 to %d bytes of A-Z a-z 0-9 _ . ~ -", node, abi.MaxName)
	case valid < time.Second || valid > longestToken:
		return "", fmt.Errorf("natscluster: a token for %v: at least 1s, at most %v", valid, longestToken)
	case node == id.Node:
		return "", fmt.Errorf("natscluster: the node %q is this one: another node needs another name", node)
	}
	if err := checkBundles(bundles); err != nil {
		return "", fmt.Errorf("natscluster: %w", err)
	}
	t := token{ID: make([]byte, 12), Node: node, Bundles: bundles, Until: time.Now().Add(valid).Unix(), Cluster: id.ID, URL: id.URL}
	if _, err := rand.Read(t.ID); err != nil {
		return "", err
	}
	for _, k := range id.Keepers {
		t.Addresses = append(t.Addresses, k.Address)
	}
	public, err := id.authorityKey.PublicKey.ECDH()
	if err != nil {
		return "", err
	}
	t.Authority = public.Bytes()
	if t.Proof, err = t.proof(id.authorityKey); err != nil {
		return "", err
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(mustEncode(t)), nil
}

// parseToken reads a token. It knows nothing of whether it is true.
func parseToken(text string) (*token, error) {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(text) > MaxToken {
		return nil, fmt.Errorf("natscluster: this is no token: one begins with %s and comes from wasmactors cluster token", tokenPrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return nil, fmt.Errorf("natscluster: the token is damaged: %w", err)
	}
	t := &token{}
	if err := strict.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("natscluster: the token is damaged: %w", err)
	}
	_, badID := hex.DecodeString(t.Cluster)
	if len(t.ID) != 12 || len(t.Proof) != sha256.Size || badID != nil || len(t.Cluster) != 16 || !abi.ValidName([]byte(t.Node)) || len(t.Addresses) > 5 || (len(t.Addresses) == 0) == (t.URL == "") || checkBundles(t.Bundles) != nil || t.URL != "" && withoutSecrets(t.URL) == "" {
		return nil, errors.New("natscluster: the token is damaged")
	}
	for _, a := range t.Addresses {
		if _, _, err := cluster.HostPort(a); err != nil {
			return nil, fmt.Errorf("natscluster: the token is damaged: %w", err)
		}
	}
	return t, nil
}

// request is what a node sends to be taken, and answer what it gets.
type request struct {
	ID    []byte `cbor:"1,keyasint"`
	Node  string `cbor:"2,keyasint"`
	Until int64  `cbor:"3,keyasint"`
	Proof []byte `cbor:"4,keyasint"`
	CSR   []byte `cbor:"5,keyasint"`

	Bundles []string `cbor:"6,keyasint,omitempty"`
}

type answer struct {
	Error       string      `cbor:"1,keyasint,omitempty"`
	Certificate []byte      `cbor:"2,keyasint,omitempty"`
	Authority   []byte      `cbor:"3,keyasint,omitempty"`
	Description Description `cbor:"4,keyasint"`
}

// enrolKeys are the keys of one request and of its answers. The request is one text, so its nonce is zero. Who sends it again
// gets another answer, so each answer has a nonce of its own, before it.
func enrolKeys(shared, public []byte, cluster string) (ask, reply cipher.AEAD, err error) {
	b, err := hkdf.Key(sha256.New, shared, public, "wasmactors enrol "+cluster, 64)
	if err != nil {
		return nil, nil, err
	}
	if ask, err = newAEAD(b[:32]); err == nil {
		reply, err = newAEAD(b[32:])
	}
	return ask, reply, err
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	c, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(c)
}

var zeroNonce [12]byte

// enrolment is a request that is under way.
type enrolment struct {
	token *token
	key   *ecdsa.PrivateKey
	reply cipher.AEAD
}

// newEnrolment is a request for a certificate, and its bytes.
func newEnrolment(t *token) (*enrolment, []byte, error) {
	authority, err := ecdh.P256().NewPublicKey(t.Authority)
	if err != nil {
		return nil, nil, fmt.Errorf("natscluster: the token is damaged: %w", err)
	}
	once, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	shared, err := once.ECDH(authority)
	if err != nil {
		return nil, nil, err
	}
	public := once.PublicKey().Bytes()
	ask, reply, err := enrolKeys(shared, public, t.Cluster)
	if err != nil {
		return nil, nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, nil, err
	}
	plain := mustEncode(request{t.ID, t.Node, t.Until, t.Proof, csr, t.Bundles})
	return &enrolment{t, key, reply}, append(public, ask.Seal(nil, zeroNonce[:], plain, nil)...), nil
}

// refusedError says why the authority has not taken a node.
type refusedError struct{ why string }

func (e *refusedError) Error() string {
	return "natscluster: the cluster has refused the token: " + e.why
}

var errAnswer = errors.New("natscluster: the answer is not the authority's")

// finish reads the answer and makes the node's folder.
func (e *enrolment) finish(dir string, b []byte) (*Identity, error) {
	if len(b) < len(zeroNonce) || len(b) > maxAnswer {
		return nil, errAnswer
	}
	plain, err := e.reply.Open(nil, b[:len(zeroNonce)], b[len(zeroNonce):], nil)
	if err != nil {
		return nil, errAnswer
	}
	var a answer
	if err := strict.Unmarshal(plain, &a); err != nil {
		return nil, fmt.Errorf("natscluster: the authority's answer: %w", err)
	}
	if a.Error != "" {
		return nil, &refusedError{a.Error}
	}
	authority, err := x509.ParseCertificate(a.Authority)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(a.Certificate)
	if err != nil {
		return nil, err
	}
	id := &Identity{Description: a.Description, Node: e.token.Node, dir: dir, authority: authority, certificate: certificate, key: e.key}
	if err := id.check(); err != nil {
		return nil, fmt.Errorf("natscluster: the authority's answer: %w", err)
	}
	if name, err := nameOf(authority, certificate); err != nil || name != e.token.Node || id.ID != e.token.Cluster || !e.key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("natscluster: the authority's answer is for another node")
	}
	return id, id.save()
}

// admit answers a request. why says why it was refused, for an event; "" if it was not. The answer is nil if the sender
// cannot have a token of this cluster.
func (id *Identity) admit(b []byte, now time.Time) (reply []byte, node, why string) {
	if len(b) < 65 || len(b) > maxEnrol {
		return nil, "", "a request to join is malformed"
	}
	public, err := ecdh.P256().NewPublicKey(b[:65])
	if err != nil {
		return nil, "", "a request to join is malformed"
	}
	own, err := id.authorityKey.ECDH()
	if err != nil {
		return nil, "", err.Error()
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, "", "a request to join is malformed"
	}
	ask, seal, err := enrolKeys(shared, b[:65], id.ID)
	if err != nil {
		return nil, "", err.Error()
	}
	plain, err := ask.Open(nil, zeroNonce[:], b[65:], nil)
	var r request
	var nonce [12]byte
	if _, e := rand.Read(nonce[:]); e != nil {
		return nil, "", e.Error()
	}
	if err != nil || strict.Unmarshal(plain, &r) != nil || len(r.ID) != 12 || !abi.ValidName([]byte(r.Node)) || checkBundles(r.Bundles) != nil {
		return nil, "", "a request to join is of another cluster, or malformed"
	}
	a := answer{}
	c, err := id.take(&r, now)
	if err != nil {
		a.Error = err.Error()
	} else {
		a = answer{Certificate: c.Raw, Authority: id.authority.Raw, Description: id.Description}
	}
	return seal.Seal(nonce[:], nonce[:], mustEncode(a), nil), r.Node, a.Error
}

// take signs the certificate that a token is good for, once: for one key of the node, which may ask again when the answer was lost.
// That the token was used, and for which key, is on the disk before.
func (id *Identity) take(r *request, now time.Time) (*x509.Certificate, error) {
	t := token{ID: r.ID, Node: r.Node, Until: r.Until, Cluster: id.ID, Bundles: r.Bundles}
	want, err := t.proof(id.authorityKey)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(want, r.Proof) {
		return nil, errors.New("the token is not one of this cluster")
	}
	if now.Unix() > r.Until {
		return nil, fmt.Errorf("the token has expired at %s: make another with wasmactors cluster token", time.Unix(r.Until, 0).UTC().Format(time.RFC3339))
	}
	csr, err := x509.ParseCertificateRequest(r.CSR)
	if err != nil || csr.CheckSignature() != nil {
		return nil, errors.New("the request for a certificate is malformed")
	}
	key, ok := csr.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("the request for a certificate has a key of another kind")
	}
	c, err := sign(id.authorityKey, id.authority, r.Node, key, r.Bundles...)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(id.dir, folderUsed)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the use of the token cannot be noted: %w", err)
	}
	path, print := filepath.Join(folder, hex.EncodeToString(r.ID)), sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	err = writeNew(path, fmt.Appendf(nil, "%x %s %s\n", print, r.Node, now.UTC().Format(time.RFC3339)))
	if errors.Is(err, fs.ErrExist) {
		if note, e := regular.ReadFile(path, maxFile); e != nil || !strings.HasPrefix(string(note), hex.EncodeToString(print[:])+" ") {
			return nil, errors.New("the token was used before: it is good once. If it was not you who has used it, it was stolen: make the cluster anew")
		}
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the use of the token cannot be noted: %w", err)
	}
	return c, nil
}
