package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// maxProxyAnswer bounds the head of a proxy's answer, in bytes.
const maxProxyAnswer = 16 << 10

// Proxy is an HTTP proxy for connections, by CONNECT. It is asked for addresses, never for names,
// so that the checked address is the one dialled. The proxy's own address is not checked.
type Proxy struct {
	address string // host:port
	tls     *tls.Config
	auth    string // of Proxy-Authorization; "": none
}

// NewProxy makes a Proxy from a URL such as http://user:password@proxy.example:3128. An https
// proxy is verified with the roots of the configuration.
func NewProxy(u *url.URL, config *tls.Config) (*Proxy, error) {
	p := &Proxy{}
	port := u.Port()
	switch u.Scheme {
	case "http":
		if port == "" {
			port = "80"
		}
	case "https":
		if port == "" {
			port = "443"
		}
		p.tls = config.Clone()
		p.tls.ServerName = u.Hostname()
		p.tls.NextProtos = []string{"http/1.1"}
	default:
		return nil, errors.New("a proxy is http:// or https://")
	}
	if u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("a proxy is a scheme, perhaps a user and password, a host and a port")
	}
	p.address = net.JoinHostPort(u.Hostname(), port)
	if u.User != nil {
		password, _ := u.User.Password()
		p.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return p, nil
}

// tunnel makes a connection to an address through the proxy.
func (p *Proxy) tunnel(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, fmt.Errorf("the proxy: %w", err)
	}
	// A context that ends closes what waits for the proxy.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := p.handshake(ctx, conn, to)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("the proxy: %w", err)
	}
	return tunnel, nil
}

func (p *Proxy) handshake(ctx context.Context, conn net.Conn, to netip.AddrPort) (net.Conn, error) {
	if p.tls != nil {
		secured := tls.Client(conn, p.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secured
	}
	request := "CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\n"
	if p.auth != "" {
		request += "Proxy-Authorization: " + p.auth + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxProxyAnswer}
	reader := bufio.NewReader(limited)
	answer, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil && limited.N <= 0:
		return nil, errors.New("its answer is too large")
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it said %d", answer.StatusCode)
	case reader.Buffered() > 0:
		return nil, errors.New("it sent data before it was asked")
	}
	return conn, nil
}
