package gateway

import (
	"errors"
	"net/http"
)

// Auth says who may use a route. One of its parts is set.
type Auth struct {
	Basic *Basic
	JWT   *JWT
	MTLS  *MTLS
}

// authenticator finds out who has made a request.
type authenticator interface {
	identify(r *http.Request) (*Identity, problem)
	challenge() string // WWW-Authenticate
}

// check reports what is wrong without reading files, and which key it is about.
func (a *Auth) check() (key string, err error) {
	n := 0
	for _, given := range []bool{a.Basic != nil, a.JWT != nil, a.MTLS != nil} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		return "", errors.New("one of basic, jwt and mtls is needed")
	case a.Basic != nil:
		return "basic", a.Basic.check()
	case a.JWT != nil:
		return "jwt", a.JWT.check()
	}
	return "mtls", a.MTLS.check()
}

// open reads the files.
func (a *Auth) open(g *Gateway) (authenticator, string, error) {
	if key, err := a.check(); err != nil {
		return nil, key, err
	}
	switch {
	case a.Basic != nil:
		b, err := a.Basic.open(g)
		return b, "basic", err
	case a.JWT != nil:
		j, err := a.JWT.open(g)
		return j, "jwt", err
	}
	return a.MTLS, "mtls", nil
}

func unauthorized(text string, cause error) problem {
	return problem{status: http.StatusUnauthorized, text: text, cause: cause}
}
