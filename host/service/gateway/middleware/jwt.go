package middleware

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// JWT requires a bearer token that one of the keys has signed. A key is for one algorithm, so
// a token cannot choose how it is verified.
type JWT struct {
	Keys     []JWTKey
	Audience string        // "": any is accepted
	Issuer   string        // "": any is accepted
	Leeway   time.Duration // that clocks may differ; default none, most 5 min
	Claims   []string      // that the actor gets to see; sub is the identity's name
}

// JWTKey is a key that tokens are verified with.
type JWTKey struct {
	Alg  string // HS256, RS256, ES256 or EdDSA
	File string // HS256: the secret, at least 32 bytes; else the public key in PEM
	ID   string // kid of tokens that it is for; "": those without, and unknown ones
	Key  any    // instead of File: []byte, *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// Bounds, in bytes.
const (
	maxToken = 8 << 10
	maxKey   = 4 << 20 // a file of a key
)

func (j *JWT) check() error {
	if len(j.Keys) == 0 {
		return errors.New("keys are needed")
	}
	if j.Leeway < 0 || j.Leeway > 5*time.Minute {
		return errors.New("leeway is at most 5m")
	}
	seen := map[string]bool{}
	for _, k := range j.Keys {
		if !slices.Contains([]string{"HS256", "RS256", "ES256", "EdDSA"}, k.Alg) {
			return fmt.Errorf("alg is HS256, RS256, ES256 or EdDSA, not %q", k.Alg)
		}
		if (k.File == "") == (k.Key == nil) {
			return errors.New("a key has a file")
		}
		if id := k.Alg + "\x00" + k.ID; seen[id] {
			return fmt.Errorf("two keys are for %s and the id %q", k.Alg, k.ID)
		} else {
			seen[id] = true
		}
	}
	return nil
}

// bearer serves a JWT.
type bearer struct {
	*JWT
	parser *jwt.Parser
	keys   map[string]any // by alg and id
}

func (j *JWT) open(o Options) (*bearer, error) {
	b := &bearer{JWT: j, keys: map[string]any{}}
	var algs []string
	for _, k := range j.Keys {
		key := k.Key
		if key == nil {
			data, err := regular.ReadFile(o.at(k.File), maxKey)
			if err != nil {
				return nil, err
			}
			if key, err = parseKey(k.Alg, data); err != nil {
				return nil, fmt.Errorf("%s: %w", k.File, err)
			}
		}
		if err := fits(k.Alg, key); err != nil {
			return nil, err
		}
		b.keys[k.Alg+"\x00"+k.ID] = key
		algs = append(algs, k.Alg)
	}
	with := []jwt.ParserOption{jwt.WithValidMethods(algs), jwt.WithExpirationRequired(), jwt.WithLeeway(j.Leeway), jwt.WithTimeFunc(o.Clock.Now), jwt.WithStrictDecoding()}
	if j.Audience != "" {
		with = append(with, jwt.WithAudience(j.Audience))
	}
	if j.Issuer != "" {
		with = append(with, jwt.WithIssuer(j.Issuer))
	}
	b.parser = jwt.NewParser(with...)
	return b, nil
}

// parseKey reads a key file.
func parseKey(alg string, data []byte) (any, error) {
	if alg == "HS256" {
		return []byte(strings.TrimRight(string(data), "\r\n")), nil
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("not a public key in PEM")
	}
	if block.Type == "CERTIFICATE" {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return c.PublicKey, nil
	}
	return x509.ParsePKIXPublicKey(block.Bytes)
}

// fits checks that a key is of the algorithm, and strong enough.
func fits(alg string, key any) error {
	switch k := key.(type) {
	case []byte:
		if alg == "HS256" && len(k) >= 32 {
			return nil
		}
		if alg == "HS256" {
			return fmt.Errorf("a secret of HS256 has at least 32 bytes, this one has %d", len(k))
		}
	case *rsa.PublicKey:
		if alg == "RS256" && k.N.BitLen() >= 2048 {
			return nil
		}
		if alg == "RS256" {
			return errors.New("a key of RS256 has at least 2048 bits")
		}
	case *ecdsa.PublicKey:
		if alg == "ES256" && k.Curve == elliptic.P256() {
			return nil
		}
	case ed25519.PublicKey:
		if alg == "EdDSA" {
			return nil
		}
	}
	return fmt.Errorf("the key is not one of %s", alg)
}

func (b *bearer) challenge() string { return `Bearer` }

func (b *bearer) identify(r *http.Request) (*Identity, *Refusal) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return nil, unauthorized("a bearer token is needed", nil)
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if text = strings.TrimSpace(text); !strings.EqualFold(scheme, "Bearer") || text == "" || len(text) > maxToken {
		return nil, unauthorized("a bearer token is needed", nil)
	}
	claims := jwt.MapClaims{}
	t, err := b.parser.ParseWithClaims(text, claims, b.key)
	if err != nil || !t.Valid {
		return nil, unauthorized("the token is not valid", err)
	}
	who := &Identity{Kind: "jwt"}
	if who.Name, err = claims.GetSubject(); err != nil {
		return nil, unauthorized("the token is not valid", err)
	}
	for _, name := range b.Claims {
		if v, ok := claims[name]; ok {
			if who.Claims == nil {
				who.Claims = map[string]any{}
			}
			who.Claims[name] = v
		}
	}
	return who, nil
}

// key finds the key of a token. A token with critical extensions is refused.
func (b *bearer) key(t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("the token has a header crit")
	}
	id, _ := t.Header["kid"].(string)
	if k, ok := b.keys[t.Method.Alg()+"\x00"+id]; ok {
		return k, nil
	}
	if k, ok := b.keys[t.Method.Alg()+"\x00"]; ok {
		return k, nil
	}
	return nil, errors.New("no key is for this token")
}
