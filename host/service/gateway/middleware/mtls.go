package middleware

import (
	"fmt"
	"net/http"
	"path"
	"slices"
)

// MTLS requires a certificate of the client, which the listener has verified. The identity is
// its subject, in the notation of RFC 2253.
type MTLS struct {
	// Subjects are patterns of subjects, where * stands for any run of characters but /;
	// nil: any that the listener's authorities have signed.
	Subjects []string
}

func (m *MTLS) check() error {
	for _, s := range m.Subjects {
		if _, err := path.Match(s, ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %w", s, err)
		}
	}
	return nil
}

func (m *MTLS) challenge() string { return "" }

func (m *MTLS) identify(r *http.Request) (*Identity, *Refusal) {
	forbidden := func(text string) *Refusal { return &Refusal{Status: http.StatusForbidden, Text: text} }
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.PeerCertificates) == 0 {
		return nil, forbidden("a client certificate is needed")
	}
	subject := r.TLS.PeerCertificates[0].Subject.String()
	if m.Subjects != nil && !slices.ContainsFunc(m.Subjects, func(p string) bool { ok, _ := path.Match(p, subject); return ok }) {
		return nil, forbidden("the certificate is not one of those allowed")
	}
	return &Identity{Kind: "mtls", Name: subject}, nil
}
