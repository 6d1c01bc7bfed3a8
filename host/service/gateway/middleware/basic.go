package middleware

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Basic requires a user and a password. Only hashes are stored: bcrypt ($2a$, $2b$, $2y$, as
// htpasswd -B writes it) or argon2id ($argon2id$v=19$m=65536,t=3,p=2$salt$hash).
type Basic struct {
	File  string            // lines of user:hash; relative to Options.Base
	Users map[string]string // instead of File: hashes by user
	Realm string            // default restricted
}

func (b *Basic) check() error {
	if (b.File == "") == (b.Users == nil) {
		return errors.New("a file of lines user:hash is needed")
	}
	if strings.ContainsAny(b.Realm, "\"\\\r\n") {
		return errors.New("the realm has a quote, a backslash or a line's end")
	}
	return nil
}

// passwords serves a Basic. A hash is slow on purpose: few are computed at a time, few requests
// wait for that, and a password that was right a minute ago is not hashed again.
type passwords struct {
	realm string
	users map[string]hash
	dummy hash // for users that do not exist, so that they take as long
	slots chan struct{}
	o     Options

	mu    sync.Mutex
	key   [32]byte
	known map[[32]byte]time.Time // until when
	at    map[any]int            // requests by client that are hashed, or wait for it
	all   int
}

// Bounds of passwords.
const (
	maxPassword = 72 // bytes; bcrypt does not look at more
	knownFor    = time.Minute
	mostKnown   = 10_000
	mostEach    = 4       // requests of one client that are hashed, or wait for it
	mostWaiting = 32      // in all
	maxUsers    = 4 << 20 // bytes of a file of users, some 50,000
)

func (b *Basic) open(o Options) (*passwords, error) {
	p := &passwords{realm: b.Realm, users: map[string]hash{}, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), o: o, known: map[[32]byte]time.Time{}, at: map[any]int{}}
	if p.realm == "" {
		p.realm = "restricted"
	}
	_, _ = rand.Read(p.key[:]) // never fails
	add := func(user, text string) error {
		h, err := parseHash(text)
		switch {
		case err != nil:
			return fmt.Errorf("user %q: %w", user, err)
		case user == "":
			return errors.New("a user without a name")
		}
		if _, twice := p.users[user]; twice {
			return fmt.Errorf("user %q comes twice", user)
		}
		p.users[user], p.dummy = h, h
		return nil
	}
	for user, text := range b.Users {
		if err := add(user, text); err != nil {
			return nil, err
		}
	}
	if b.File != "" {
		data, err := regular.ReadFile(o.at(b.File), maxUsers)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for n := 1; lines.Scan(); n++ {
			line := strings.TrimSpace(lines.Text())
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			user, text, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("%s:%d: not user:hash", b.File, n)
			}
			if err := add(user, text); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", b.File, n, err)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", b.File, err)
		}
	}
	if len(p.users) == 0 {
		return nil, errors.New("there are no users")
	}
	return p, nil
}

func (p *passwords) challenge() string { return `Basic realm="` + p.realm + `", charset="UTF-8"` }

func (p *passwords) identify(r *http.Request) (*Identity, *Refusal) {
	user, password, ok := r.BasicAuth()
	if !ok || len(r.Header["Authorization"]) != 1 || len(password) > maxPassword || !utf8.ValidString(user) || !ValidValue(user) {
		return nil, unauthorized("a user and a password are needed", nil)
	}
	mac := hmac.New(sha256.New, p.key[:])
	mac.Write([]byte(user + "\x00" + password))
	sum := [32]byte(mac.Sum(nil))
	now := p.o.Clock.Now()
	p.mu.Lock()
	until, known := p.known[sum]
	p.mu.Unlock()
	if known && now.Before(until) {
		return &Identity{Kind: "basic", Name: user}, nil
	}
	var client any
	if p.o.Client != nil {
		client = p.o.Client(r)
	}
	if bad := p.enter(client); bad != nil {
		return nil, bad
	}
	defer p.leave(client)
	late := make(chan struct{})
	timer := p.o.Clock.AfterFunc(p.o.Wait, func() { close(late) })
	defer timer.Stop()
	switch executor.Put(p.o.Clock, p.slots, struct{}{}, r.Context().Done(), late) {
	case 0:
		defer func() { <-p.slots }()
	case 1:
		return nil, &Refusal{Status: StatusGone, Text: "the client has disconnected"}
	default:
		return nil, &tooManyLogins
	}
	h, exists := p.users[user]
	if !exists {
		h = p.dummy
	}
	if !h.fits(password) || !exists {
		return nil, unauthorized("the user or the password is wrong", nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= mostKnown {
		clear(p.known)
	}
	p.known[sum] = now.Add(knownFor)
	return &Identity{Kind: "basic", Name: user}, nil
}

var tooManyLogins = Refusal{Status: http.StatusServiceUnavailable, Text: "too many passwords are being checked", Retry: time.Second}

// enter counts a request whose password is to be hashed, if there is room for it.
func (p *passwords) enter(client any) *Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.at[client] >= mostEach && client != nil:
		return &Refusal{Status: http.StatusTooManyRequests, Text: "passwords from this address are being checked already", Retry: time.Second}
	case p.all >= mostWaiting:
		return &tooManyLogins
	}
	p.at[client]++
	p.all++
	return nil
}

func (p *passwords) leave(client any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.at[client]--; p.at[client] == 0 {
		delete(p.at, client)
	}
}

// hash is of a password.
type hash struct {
	bcrypt []byte // else argon2id

	time, memory uint32
	threads      uint8
	salt, sum    []byte
}

func parseHash(text string) (hash, error) {
	if strings.HasPrefix(text, "$2") {
		cost, err := bcrypt.Cost([]byte(text))
		switch {
		case err != nil:
			return hash{}, err
		case cost > 14:
			return hash{}, fmt.Errorf("a bcrypt hash of cost %d takes seconds: at most 14", cost)
		}
		return hash{bcrypt: []byte(text)}, nil
	}
	var h hash
	var version int
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return hash{}, errors.New("the hash is neither bcrypt ($2b$...) nor argon2id ($argon2id$...)")
	}
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return hash{}, fmt.Errorf("argon2id: the version is v=%d", argon2.Version)
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil {
		return hash{}, errors.New("argon2id: m=...,t=...,p=... is not there")
	}
	var err, err2 error
	h.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	h.sum, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case err != nil || err2 != nil || len(h.salt) < 8 || len(h.sum) < 16 || len(h.sum) > 64:
		return hash{}, errors.New("argon2id: the salt or the sum is not valid")
	case h.memory < 8 || h.memory > 256<<10 || h.time < 1 || h.time > 16 || h.threads < 1 || h.threads > 16:
		return hash{}, errors.New("argon2id: m is 8 to 262144, t and p are 1 to 16")
	}
	return h, nil
}

// fits compares in constant time.
func (h *hash) fits(password string) bool {
	if h.bcrypt != nil {
		return bcrypt.CompareHashAndPassword(h.bcrypt, []byte(password)) == nil
	}
	sum := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(sum, h.sum) == 1
}
