package natscluster

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// Accounts of the embedded server. Links have one of their own, with a connection of its own between keepers, so that bulk
// does not slow the directory down. Keepers alone connect to that of the journals, which has what services share, too.
const (
	accountDirectory = "DIRECTORY"
	accountLinks     = "LINKS"
	accountJournals  = "JOURNALS"
	accountEnrol     = "ENROL"
	accountSystem    = "SYSTEM"
)

// Bounds of the embedded server.
const (
	maxPayload     = 1 << 20
	maxConnections = 4096
	maxPending     = 64 << 20
	maxStore       = 4<<30 + mostJournals*maxJournal
	maxEnrolling   = 256 // connections that may only ask with a token, which anybody has
	startTime      = 10 * time.Second
)

// embedded is a server in this process.
type embedded struct {
	server *server.Server
	secret string // of this process's own connections
}

// startServer starts the server of a keeper, which listens at listen, or else at its address.
func startServer(id *Identity, listen string) (*embedded, error) {
	own, _ := id.keeper(id.Node)
	if listen == "" {
		listen = own.Address
	}
	host, port, err := cluster.HostPort(listen)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	e := &embedded{secret: hex.EncodeToString(secret)}
	o := &server.Options{}
	config := fmt.Sprintf("accounts { %s { jetstream: enabled }, %s { jetstream { max_streams: %d } }, %s {}, %s { limits { max_conn: %d, max_subs: 4, max_payload: %d } }, %s {} }\nsystem_account: %s\njetstream { store_dir: %q, sync_interval: always, max_file_store: %d, max_memory_store: %d }\n",
		accountDirectory, accountJournals, mostJournals+len(sharing), accountLinks, accountEnrol, maxEnrolling, maxAnswer, accountSystem, accountSystem, filepath.Join(id.dir, folderStore), int64(maxStore), int64(64<<20))
	if len(id.Keepers) > 1 {
		config += fmt.Sprintf("cluster { name: %q, accounts: [%s] }\n", id.ID, accountLinks)
	}
	if err := o.ProcessConfigString(config); err != nil {
		return nil, fmt.Errorf("natscluster: the server's configuration: %w", err)
	}
	o.ServerName, o.Host, o.Port = id.Node, host, port
	o.NoLog, o.NoSigs, o.DisableShortFirstPing = true, true, true
	o.MaxPayload, o.MaxPending, o.MaxConn = maxPayload, maxPending, maxConnections
	o.MaxSubs, o.MaxControlLine = 0, 4096
	o.PingInterval, o.MaxPingsOut = 2*time.Second, 2
	o.WriteDeadline = 2 * time.Second
	o.TLSConfig, o.TLSTimeout = id.transport(func(string) bool { return true }, true), 5
	o.CustomClientAuthentication = gatekeeper{id, e}
	if len(id.Keepers) > 1 {
		o.Cluster.Host, o.Cluster.Port = host, port+1
		o.Cluster.NoAdvertise, o.Cluster.Advertise = true, next(own.Address)
		o.Cluster.PoolSize = 1
		o.Cluster.TLSConfig, o.Cluster.TLSTimeout = id.transport(func(name string) bool { _, ok := id.keeper(name); return ok }, false), 5
		o.Cluster.PingInterval, o.Cluster.MaxPingsOut = time.Second, 2
		for _, k := range id.Keepers {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: next(k.Address)})
		}
		shortElections()
	}
	e.server, err = server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("natscluster: the embedded server: %w", err)
	}
	e.server.Start()
	if !e.server.ReadyForConnections(startTime) {
		e.close()
		return nil, fmt.Errorf("natscluster: the embedded server does not listen at %s: is the address taken, or of another machine?", listen)
	}
	return e, nil
}

// next is the address with the port after it.
func next(address string) string {
	host, port, err := cluster.HostPort(address)
	if err != nil {
		return address
	}
	return net.JoinHostPort(host, strconv.Itoa(port+1))
}

func (e *embedded) close() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// options are those of a connection of this process.
func (e *embedded) options(account string) []nats.Option {
	return []nats.Option{nats.InProcessServer(e.server), nats.UserInfo(account, e.secret)}
}

// onlyDirectory lets a node of another process use the directory, and ask keepers for what bundles keep: with names of bundles, of these
// only. Of the directory it changes what nodes write: their entries, the tables of kinds of these bundles, and, if it was first, whose the
// directory is; and tables that are of no bundle, or of all, as the release before has them. It can
// neither make, delete nor empty a stream: keepers make those that there are. What it is answered no other node can read.
func (d *Description) onlyDirectory(node string, bundles []string) *server.Permissions {
	var allow []string
	for _, key := range []string{"node.*", "shard.*", keyDescription} {
		allow = append(allow, d.subjectEntries()+key)
	}
	for _, name := range bundles {
		allow = append(allow, d.subjectKeys(name), d.subjectValues(name), d.subjectEntries()+"shard."+cluster.KeyPart(name)+".*")
	}
	if len(bundles) == 0 {
		allow = append(allow, d.subjectOfKeys()+"*", d.subjectOfValues()+"*", d.subjectEntries()+"shard.*.*")
	}
	for _, request := range []string{"STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET"} {
		allow = append(allow, "$JS.API."+request+"."+d.stream())
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: allow},
		Subscribe: &server.SubjectPermission{Allow: []string{inboxOf(node) + ".>", d.subjectTold() + ">"}},
	}
}

// gatekeeper says which account a connection is of. Processes of this machine cannot know the secret; others have a certificate.
type gatekeeper struct {
	id *Identity
	*embedded
}

// Check implements server.Authentication.
func (g gatekeeper) Check(c server.ClientAuthentication) bool {
	name := c.GetOpts().Username
	var p *server.Permissions
	switch tls := c.GetTLSConnectionState(); {
	case tls != nil && len(tls.PeerCertificates) > 0 && name == accountDirectory: // the certificate was verified
		p = g.id.onlyDirectory(tls.PeerCertificates[0].Subject.CommonName, bundlesOf(tls.PeerCertificates[0]))
	case tls != nil && len(tls.PeerCertificates) > 0 && name == accountLinks:
	case tls == nil && subtle.ConstantTimeCompare([]byte(c.GetOpts().Password), []byte(g.secret)) == 1:
	case tls != nil && name == accountEnrol:
		p = &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{g.id.subjectEnrol()}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}
	default:
		return false
	}
	a, err := g.server.LookupAccount(name)
	if err != nil {
		return false
	}
	c.RegisterUser(&server.User{Username: name, Account: a, Permissions: p})
	return true
}
