package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// authority signs certificates for a test, and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	a := &authority{t: t, dir: dir}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) issue(name string) Certificate {
	a.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, _ := x509.MarshalPKCS8PrivateKey(key)
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", private)
	return Certificate{Cert: name + ".pem", Key: name + ".key"}
}

func TestTLS(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	a := newAuthority(t, w.env.Base)
	one, two, client := a.issue("one.test"), a.issue("two.test"), a.issue("client.test")

	g := usual()
	g.TLS = TLS{Certificates: []Certificate{one, two}, ClientCA: "ca.pem"}
	s := w.puppet("server", g)
	_, address := s.listen(args{"tls": args{"alpn": []string{"echo/1", "echo/2"}}})
	_, port, _ := net.SplitHostPort(address)

	g = Grant{Connect: []string{"127.0.0.1:*", "localhost:*"}, TLS: TLS{Certificates: []Certificate{client}, Roots: "ca.pem", Names: []string{"one.test", "two.test"}, Required: true}}
	c := w.puppet("client", g)
	connect := func(p *puppet, tls any) (opened, string) {
		t.Helper()
		r := args{"address": "127.0.0.1:" + port}
		if tls != nil {
			r["tls"] = tls
		}
		payload, failed := p.ask(w.svc.Ref(), "connect", r)
		var o opened
		if failed == "" {
			if err := cbor.Unmarshal(payload, &o); err != nil {
				t.Fatal(err)
			}
		}
		return o, failed
	}
	for _, name := range []string{"one.test", "two.test"} {
		o, failed := connect(c, args{"server_name": name, "alpn": []string{"echo/2"}})
		if failed != "" {
			t.Fatal(failed)
		}
		if len(o.TLS.Names) != 1 || o.TLS.Names[0] != name || o.TLS.ALPN != "echo/2" || o.TLS.Version != "TLS 1.3" {
			t.Fatalf("%+v", o.TLS)
		}
		in := s.connected()
		if in.TLS.ServerName != name || in.TLS.ALPN != "echo/2" || in.TLS.Peer != "CN=client.test" {
			t.Fatalf("%+v", in.TLS)
		}
		s.tell(in.ref, "register", nil)
		c.tell(w.refOf(o.Conn), "register", nil)
		c.tell(w.refOf(o.Conn), "write", []byte("secret"))
		if m := s.expect(Data); m.data(t) != "secret" {
			t.Fatal(m.data(t))
		}
		// Half of it closed, on both sides: nothing is lost.
		s.tell(in.ref, "write", []byte("answer"))
		s.tell(in.ref, "close", "half")
		if m := c.expect(Data); m.data(t) != "answer" {
			t.Fatal(m.data(t))
		}
		c.closed(HowPeer)
		s.closed(HowConfirmed)
	}
	for _, bad := range []struct {
		tls  any
		want string
	}{
		{nil, "denied: "}, {args{"server_name": "three.test"}, "denied: "}, {args{}, "failed: "}, {args{"server_name": "one.test", "alpn": []string{""}}, "bad_request: "},
	} {
		if _, failed := connect(c, bad.tls); !strings.HasPrefix(failed, bad.want) {
			t.Fatalf("%v: %q, want %s", bad.tls, failed, bad.want)
		}
	}
	// A client without a certificate is not announced; nor is one that speaks no TLS.
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	naked, err := tls.Dial("tcp", address, &tls.Config{ServerName: "one.test", RootCAs: pool})
	if err == nil {
		if _, err = io.ReadAll(naked); err == nil {
			t.Fatal("a client without a certificate was taken")
		}
		_ = naked.Close()
	}
	plain := w.dial(address)
	send(t, plain, "GET / HTTP/1.0\r\n\r\n")
	if b, _ := io.ReadAll(plain); len(b) > 64 {
		t.Fatalf("%q", b)
	}
	select {
	case m := <-s.got:
		t.Fatalf("announced: %x", m.Payload)
	default:
	}
	// Without the authority nothing is trusted.
	stranger := w.puppet("stranger", Grant{Connect: []string{"127.0.0.1:*"}, TLS: TLS{Names: []string{"one.test"}}})
	if _, failed := connect(stranger, args{"server_name": "one.test"}); !strings.Contains(failed, "unknown authority") {
		t.Fatal(failed)
	}
	if _, failed := stranger.ask(w.svc.Ref(), "listen", args{"address": "127.0.0.1:0", "tls": args{}}); !strings.HasPrefix(failed, "denied: ") {
		t.Fatal(failed)
	}
	missing := w.puppetWith("missing", Service.Grant(Grant{Connect: []string{"127.0.0.1:*"}, TLS: TLS{Roots: "none.pem"}}, service.Bounds{}), host.Limits{})
	if _, failed := connect(missing, args{}); !strings.HasPrefix(failed, "unavailable: ") {
		t.Fatal(failed)
	}
}
