package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

// access is what a caller may do.
type access uint8

const (
	nobody access = iota
	reader        // may look
	full          // may do everything
)

func (a access) String() string { return [...]string{"nobody", "read", "full"}[a] }

// A browser authenticates with a session instead of the token: a cookie that scripts cannot
// read, and a key that only scripts of this very origin know, because cookies of one host
// are sent to all of its ports. One of the two without the other is useless.
type session struct {
	access access
	key    [sha256.Size]byte
	ends   time.Time
}

// sessions are few; the one of the same access that expires first makes room, of which each has half.
type sessions struct {
	mu   sync.Mutex
	most int
	open map[[sha256.Size]byte]session
}

// SessionKey is the header for the key of a session.
const SessionKey = "X-Session-Key"

func (s *sessions) begin(a access, now time.Time, lasts time.Duration) (id, key string, ends time.Time) {
	id, key, ends = randomText(), randomText(), now.Add(lasts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[[sha256.Size]byte]session{}
	}
	var first [sha256.Size]byte
	var at time.Time
	same := 0
	for h, x := range s.open {
		if x.access == a {
			if same++; at.IsZero() || x.ends.Before(at) {
				first, at = h, x.ends
			}
		}
	}
	if same >= max(s.most/2, 1) {
		delete(s.open, first)
	}
	s.open[sha256.Sum256([]byte(id))] = session{a, sha256.Sum256([]byte(key)), ends}
	return id, key, ends
}

func (s *sessions) access(id, key string, now time.Time) access {
	h, k := sha256.Sum256([]byte(id)), sha256.Sum256([]byte(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.open[h]
	switch {
	case !ok:
		return nobody
	case now.After(x.ends):
		delete(s.open, h)
		return nobody
	case subtle.ConstantTimeCompare(x.key[:], k[:]) != 1:
		return nobody
	}
	return x.access
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(id)))
}

// Session is what a browser gets for a token.
type Session struct {
	Version int       `json:"version"`
	Access  string    `json:"access"` // "full" or "read"
	Key     string    `json:"key"`    // to be sent as X-Session-Key with each request
	Ends    time.Time `json:"ends"`
}

// beginSession turns a token into a session. Only a page of the server's own may ask.
func (s *Server) beginSession(c *call) error {
	if c.r.Header.Get("Origin") == "" {
		return &Problem{Status: http.StatusForbidden, Code: "no_origin", Message: "a session is for a page of this server", Hint: "programs send the token as Authorization: Bearer"}
	}
	id, key, ends := s.sessions.begin(c.access, time.Now(), s.cfg.bounds.sessionTime)
	http.SetCookie(c.w, &http.Cookie{Name: c.door.cookie, Value: id, Path: "/", Expires: ends, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return c.json(Session{Version: 1, Access: c.access.String(), Key: key, Ends: ends})
}

// endSession ends a session.
func (s *Server) endSession(c *call) error {
	if cookie, err := c.r.Cookie(c.door.cookie); err == nil {
		s.sessions.end(cookie.Value)
	}
	http.SetCookie(c.w, &http.Cookie{Name: c.door.cookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
