package middleware

import (
	"context"
	"errors"
	"net/http"
)

// Auth says which clients may use what is behind it. One of its parts is set.
type Auth struct {
	Basic *Basic
	JWT   *JWT
	MTLS  *MTLS
}

// Identity is the authenticated sender of a request.
type Identity struct {
	Kind   string         // basic, jwt or mtls
	Name   string         // the user, the token's subject, or the certificate's
	Claims map[string]any // of a token, those that are wanted
}

type identityKey struct{}

// IdentityOf is who has sent a request that Auth has let through; nil: anonymous.
func IdentityOf(ctx context.Context) *Identity {
	who, _ := ctx.Value(identityKey{}).(*Identity)
	return who
}

// authenticator identifies the sender of a request.
type authenticator interface {
	identify(r *http.Request) (*Identity, *Refusal)
	challenge() string // WWW-Authenticate
}

// Check reports what is wrong without reading files, and which key it is about.
func (a *Auth) Check() (key string, err error) {
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

// Open reads the files and makes the middleware. Its error is about key.
func (a *Auth) Open(o Options) (wrap func(next http.Handler) http.Handler, key string, err error) {
	if key, err = a.Check(); err != nil {
		return nil, key, err
	}
	var by authenticator = a.MTLS
	switch {
	case a.Basic != nil:
		by, err = a.Basic.open(o)
	case a.JWT != nil:
		by, err = a.JWT.open(o)
	}
	if err != nil {
		return nil, key, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, refused := by.identify(r)
			if refused == nil {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, who)))
				return
			}
			if refused.Status == http.StatusUnauthorized {
				w.Header()["Www-Authenticate"] = []string{by.challenge()}
			}
			o.refuse(w, r, *refused)
		})
	}, key, nil
}

func unauthorized(text string, cause error) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Text: text, Cause: cause}
}
