package tcp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// tlsFiles are the certificates of a grant, read at their first use.
type tlsFiles struct {
	load  func() error
	own   []tls.Certificate
	roots *x509.CertPool // nil: the system's
	ca    *x509.CertPool // nil: no certificate is demanded of clients
}

// maxPEM bounds a file of certificates or of a key, in bytes.
const maxPEM = 4 << 20

func (f *tlsFiles) read(base string, t *TLS) error {
	file := func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		return regular.ReadFile(path, maxPEM)
	}
	for _, c := range t.Certificates {
		cert, err := file(c.Cert)
		if err != nil {
			return err
		}
		key, err := file(c.Key)
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Cert, err)
		}
		f.own = append(f.own, pair)
	}
	pool := func(path string, into *x509.CertPool) (*x509.CertPool, error) {
		pem, err := file(path)
		if err == nil && !into.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in PEM", path)
		}
		return into, err
	}
	var err error
	if t.Roots != "" {
		system, e := x509.SystemCertPool()
		if e != nil {
			system = x509.NewCertPool()
		}
		if f.roots, err = pool(t.Roots, system); err != nil {
			return err
		}
	}
	if t.ClientCA != "" {
		f.ca, err = pool(t.ClientCA, x509.NewCertPool())
	}
	return err
}

// secure is whether TLS is used; the files are read then.
func (h *holder) secure(s *secured) (bool, error) {
	if s == nil {
		if h.grant.TLS.Required {
			return false, service.Deny("tls.required", "connections without TLS are not granted")
		}
		return false, nil
	}
	if err := s.check(); err != nil {
		return false, err
	}
	if err := h.tls.load(); err != nil {
		return false, &service.Error{Code: service.Unavailable, Text: "the certificates of the grant cannot be read", Err: err}
	}
	return true, nil
}

// clientTLS is the configuration of a connection to a server; nil: there is no TLS.
func (h *holder) clientTLS(s *secured, to endpoint.Target) (*tls.Config, error) {
	if on, err := h.secure(s); !on || err != nil {
		return nil, err
	}
	name := to.Host
	if s.Name != "" {
		asked, err := egress.Host(s.Name)
		if err != nil {
			return nil, service.Errorf(service.BadRequest, "server_name: %w", err)
		}
		if asked != name && !slices.ContainsFunc(h.grant.TLS.Names, func(n string) bool { host, err := egress.Host(n); return err == nil && host == asked }) {
			return nil, service.Deny("tls.names", "asking %s for the name %.100s is not granted", to, asked)
		}
		name = asked
	}
	if name == "" {
		return nil, service.Errorf(service.BadRequest, "TLS over a socket of a file needs a server_name")
	}
	return &tls.Config{ServerName: name, RootCAs: h.tls.roots, Certificates: h.tls.own, NextProtos: s.Protocols, MinVersion: tls.VersionTLS12}, nil
}

// serverTLS is the configuration of a listener; nil: there is no TLS.
func (h *holder) serverTLS(s *secured) (*tls.Config, error) {
	if on, err := h.secure(s); !on || err != nil {
		return nil, err
	}
	if s.Name != "" {
		return nil, service.Errorf(service.BadRequest, "a listener has no server_name: clients ask for one")
	}
	if len(h.tls.own) == 0 {
		return nil, service.Deny("tls.certificates", "listening with TLS needs a certificate")
	}
	cfg := &tls.Config{Certificates: h.tls.own, NextProtos: s.Protocols, MinVersion: tls.VersionTLS12}
	if h.tls.ca != nil {
		cfg.ClientCAs, cfg.ClientAuth = h.tls.ca, tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// tlsError is what is wrong with a handshake, for a guest.
func tlsError(err error) string {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "its certificate is for another host"
	case errors.As(err, &invalid):
		return "its certificate is not valid"
	}
	return ""
}
