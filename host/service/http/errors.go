package httpclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
)

// textOf is the text of an error, without the code.
func textOf(err error) string {
	var e *service.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}

// Causes with which contexts of exchanges end.
var (
	errHeaderTime = service.Errorf(service.Timeout, "the server has not begun to answer in time")
	errIdle       = service.Errorf(service.Timeout, "nothing was sent for too long")
	errBodyTime   = service.Errorf(service.Timeout, "the body took too long")
	errClosing    = service.Errorf(service.Unavailable, "the service is closing")
)

// explain turns an error of an exchange into the guest's. Errors with a code stay as they are;
// addresses of the local network are left out.
func explain(ctx context.Context, t *target, err error) error {
	if ctx.Err() != nil {
		if coded, ok := as[*service.Error](context.Cause(ctx)); ok {
			return coded
		}
		return context.Cause(ctx) // the frame knows what has ended its context
	}
	if coded, ok := as[*service.Error](err); ok {
		return coded
	}
	if refused, ok := as[*egress.RefusedError](err); ok {
		e := service.Deny("private", "%s", refused)
		e.Err = err
		return e
	}
	e := &service.Error{Code: service.Failed, Err: err}
	switch {
	case errors.Is(err, egress.ErrConnections):
		e.Code, e.Text = service.Busy, "all connections of the service are in use"
	case isTimeout(err):
		e.Code, e.Text = service.Timeout, t.origin()+" was not reached in time"
	default:
		e.Text = t.origin() + ": " + outside(err)
	}
	return e
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// outside is the text of a network error, without local addresses.
func outside(err error) string {
	if dns, ok := as[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "there is no such host"
		}
		return "its name could not be resolved"
	}
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "its certificate is for another host"
	case errors.As(err, &invalid), errors.As(err, &certificate):
		return "its certificate is not valid"
	}
	if op, ok := as[*net.OpError](err); ok {
		if op.Op == "dial" {
			return "no connection: " + innermost(op.Err)
		}
		return op.Op + ": " + innermost(op.Err)
	}
	return clip(strings.TrimPrefix(err.Error(), "net/http: "))
}

// innermost is the text of the error that others wrap.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return clip(err.Error())
		}
		err = next
	}
}

// clip bounds a text that others have written.
func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// as finds an error of a type.
func as[E error](err error) (e E, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}
