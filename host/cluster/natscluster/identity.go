package natscluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Keeper is a node that keeps the directory. The address is host:port, at which other nodes connect; keepers connect to each
// other at the port after it.
type Keeper struct {
	Name    string `json:"name" cbor:"1,keyasint"`
	Address string `json:"address" cbor:"2,keyasint"`
}

// Description is what all nodes of a cluster have to know.
type Description struct {
	Version int           `json:"version" cbor:"1,keyasint"`
	ID      string        `json:"id" cbor:"2,keyasint"` // 16 hex digits
	Name    string        `json:"name" cbor:"3,keyasint"`
	Keepers []Keeper      `json:"keepers,omitempty" cbor:"4,keyasint,omitempty"` // 1, 3 or 5; none with URL
	URL     string        `json:"nats,omitempty" cbor:"5,keyasint,omitempty"`    // of a NATS that exists
	Lease   time.Duration `json:"lease" cbor:"6,keyasint"`                       // nanoseconds
}

// Shortest leases, which follow from how long the directory may stand still when its leader is lost.
const (
	EmbeddedLease = 4 * time.Second
	OutsideLease  = 12 * time.Second
	descriptionOf = 1 // version
	longestLease  = time.Hour
)

// ShortestLease is the shortest lease that a cluster may have.
func (d *Description) ShortestLease() time.Duration {
	if d.URL != "" {
		return OutsideLease
	}
	return EmbeddedLease
}

func (d *Description) check() error {
	id, err := hex.DecodeString(d.ID)
	switch {
	case d.Version != descriptionOf:
		return fmt.Errorf("the cluster is described in version %d, and this program knows %d", d.Version, descriptionOf)
	case err != nil || len(id) != 8 || hex.EncodeToString(id) != d.ID:
		return errors.New("the cluster's ID is not 16 hex digits")
	case !abi.ValidName([]byte(d.Name)):
		return fmt.Errorf("%q is no name of a cluster: use 1 to %d bytes of A-Z a-z 0-9 _ . ~ -", d.Name, abi.MaxName)
	case d.URL != "" && len(d.Keepers) > 0:
		return errors.New("a cluster on a NATS that exists has no keepers")
	case d.URL == "" && len(d.Keepers) != 1 && len(d.Keepers) != 3 && len(d.Keepers) != 5:
		return fmt.Errorf("%d keepers: 1, 3 or 5 nodes keep the directory", len(d.Keepers))
	case len(d.URL) > 1024:
		return errors.New("the URL has more than 1024 bytes")
	case d.URL != "" && withoutSecrets(d.URL) == "":
		return errors.New("the address of NATS is none of nats://HOST:PORT, tls://, ws:// or wss://, or several with commas")
	case d.Lease < d.ShortestLease() || d.Lease > longestLease:
		return fmt.Errorf("a lease of %v: at least %v, at most %v", d.Lease, d.ShortestLease(), longestLease)
	}
	for i, k := range d.Keepers {
		if !abi.ValidName([]byte(k.Name)) {
			return fmt.Errorf("%q is no name of a node", k.Name)
		}
		if _, _, err := cluster.HostPort(k.Address); err != nil {
			return fmt.Errorf("keeper %s: %w", k.Name, err)
		}
		for _, other := range d.Keepers[:i] {
			if other.Name == k.Name || other.Address == k.Address {
				return fmt.Errorf("keepers %s and %s have the same name or address", other.Name, k.Name)
			}
		}
	}
	return nil
}

// withoutSecrets are the addresses of a NATS that exists, as they may be shown: without passwords and tokens. It is "" if one is none.
func withoutSecrets(addresses string) string {
	var all []string
	for text := range strings.SplitSeq(addresses, ",") {
		if text = strings.TrimSpace(text); !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return ""
		}
		all = append(all, u.Scheme+"://"+u.Host)
	}
	return strings.Join(all, ",")
}

// where is where the directory is reached, to be shown.
func (d *Description) where() string {
	if d.URL != "" {
		return withoutSecrets(d.URL)
	}
	all := make([]string, len(d.Keepers))
	for i, k := range d.Keepers {
		all[i] = k.Address
	}
	return strings.Join(all, ", ")
}

// keeper is the node of the name, if it keeps the directory.
func (d *Description) keeper(name string) (Keeper, bool) {
	for _, k := range d.Keepers {
		if k.Name == name {
			return k, true
		}
	}
	return Keeper{}, false
}

// Identity is a node's folder: which cluster it is of, and the keys that prove it.
type Identity struct {
	Description
	Node string // its name

	dir          string
	authority    *x509.Certificate
	certificate  *x509.Certificate
	key          *ecdsa.PrivateKey
	authorityKey *ecdsa.PrivateKey // nil: it cannot sign
}

// Credentials is the file of a folder with the credentials for a NATS that exists.
const Credentials = "nats.creds"

// Files of the folder. None is larger than maxFile bytes.
const (
	fileCluster      = "cluster.json"
	fileAuthority    = "authority.pem"
	fileAuthorityKey = "authority.key"
	fileNode         = "node.pem"
	fileKey          = "node.key"
	fileCredentials  = Credentials
	folderUsed       = "used"
	folderStore      = "store"
	maxFile          = 64 << 10
)

// Init makes a cluster, and the folder of its first node, which holds the authority. The folder must not exist, or be empty.
func Init(dir, node string, d Description) (*Identity, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	d.Version, d.ID = descriptionOf, hex.EncodeToString(b[:])
	if d.Lease == 0 {
		d.Lease = d.ShortestLease()
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("natscluster: %w", err)
	}
	if _, ok := d.keeper(node); !ok && d.URL == "" {
		return nil, fmt.Errorf("natscluster: node %q is not among the keepers: the node that begins the cluster keeps the directory", node)
	}
	authorityKey, authority, err := newAuthority(d.ID)
	if err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := sign(authorityKey, authority, node, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	id := &Identity{Description: d, Node: node, dir: dir, authority: authority, certificate: certificate, key: key, authorityKey: authorityKey}
	return id, id.save()
}

// Sibling makes the folder of another node without a token, with the authority of this one.
func (id *Identity) Sibling(dir, node string) (*Identity, error) {
	if id.authorityKey == nil {
		return nil, errNoAuthority
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := sign(id.authorityKey, id.authority, node, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	other := &Identity{Description: id.Description, Node: node, dir: dir, authority: id.authority, certificate: certificate, key: key}
	return other, other.save()
}

var errNoAuthority = errors.New("natscluster: this folder has no key of the cluster's authority: tokens come from the node on which the cluster was made")

func (id *Identity) save() error {
	if !abi.ValidName([]byte(id.Node)) {
		return fmt.Errorf("natscluster: %q is no name of a node: use 1 to %d bytes of A-Z a-z 0-9 _ . ~ -", id.Node, abi.MaxName)
	}
	if err := makeFolder(id.dir); err != nil {
		return err
	}
	text, err := json.MarshalIndent(id.Description, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		fileAuthority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.authority.Raw}),
		fileNode:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.certificate.Raw}),
	}
	for name, key := range map[string]*ecdsa.PrivateKey{fileKey: id.key, fileAuthorityKey: id.authorityKey} {
		if key == nil {
			continue
		}
		b, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		files[name] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
	}
	for name, b := range files {
		if err := writeNew(filepath.Join(id.dir, name), b); err != nil {
			return err
		}
	}
	return writeNew(filepath.Join(id.dir, fileCluster), append(text, '\n')) // last: a folder without it is none
}

// makeFolder makes a folder for a node; it may be there if it is empty but for credentials.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range there {
		if f.Name() != fileCredentials {
			return fmt.Errorf("natscluster: the folder %s is not empty", dir)
		}
	}
	return nil
}

// writeNew writes a file that does not exist, and has it on the disk.
func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if d, e := os.Open(filepath.Dir(path)); e == nil {
		err = errors.Join(err, d.Sync(), d.Close())
	}
	return err
}

// LoadIdentity reads a node's folder.
func LoadIdentity(dir string) (*Identity, error) {
	id := &Identity{dir: dir}
	if err := id.load(); err != nil {
		return nil, fmt.Errorf("natscluster: the folder %s: %w", dir, err)
	}
	return id, nil
}

func (id *Identity) load() error {
	text, err := id.read(fileCluster)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is no folder of a node (no %s): wasmactors cluster init makes one, or join with a token", fileCluster)
	}
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&id.Description); err != nil {
		return fmt.Errorf("%s: %w", fileCluster, err)
	}
	if err := id.check(); err != nil {
		return fmt.Errorf("%s: %w", fileCluster, err)
	}
	if id.authority, err = id.readCertificate(fileAuthority); err != nil {
		return err
	}
	if id.certificate, err = id.readCertificate(fileNode); err != nil {
		return err
	}
	if id.Node, err = nameOf(id.authority, id.certificate); err != nil {
		return fmt.Errorf("%s: %w", fileNode, err)
	}
	if len(id.authority.Subject.Organization) != 1 || id.authority.Subject.Organization[0] != id.ID {
		return fmt.Errorf("%s: the authority is of another cluster", fileAuthority)
	}
	if id.key, err = id.readKey(fileKey); err != nil {
		return err
	}
	if !id.key.PublicKey.Equal(id.certificate.PublicKey) {
		return fmt.Errorf("%s: the key is not the certificate's", fileKey)
	}
	if id.authorityKey, err = id.readKey(fileAuthorityKey); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !id.authorityKey.PublicKey.Equal(id.authority.PublicKey) {
		err = fmt.Errorf("%s: the key is not the authority's", fileAuthorityKey)
	}
	return err
}

func (id *Identity) read(name string) ([]byte, error) {
	return regular.ReadFile(filepath.Join(id.dir, name), maxFile)
}

func (id *Identity) readCertificate(name string) (*x509.Certificate, error) {
	b, err := id.read(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" || len(block.Bytes) > maxCertificate {
		return nil, fmt.Errorf("%s: no certificate", name)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func (id *Identity) readKey(name string) (*ecdsa.PrivateKey, error) {
	b, err := id.read(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s: no key", name)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not a key of the curve P-256", name)
	}
	return key, nil
}

// Certificate proves who the node is, to its peers' links: see [cluster.Config].Identity.
func (id *Identity) Certificate() []byte { return id.certificate.Raw }

// Keeps reports whether the node keeps the directory, and the address at which others connect to it then.
func (id *Identity) Keeps() (address string, ok bool) {
	k, ok := id.keeper(id.Node)
	return k.Address, ok
}

// Shares reports whether the node may write what services share of a bundle.
func (id *Identity) Shares(bundle string) bool {
	all := bundlesOf(id.certificate)
	return len(all) == 0 || slices.Contains(all, bundle)
}

// Signs reports whether the folder has the key of the authority, which makes and takes tokens.
func (id *Identity) Signs() bool { return id.authorityKey != nil }
