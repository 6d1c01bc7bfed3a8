package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// Token is a secret that opens a server. The zero value opens nothing.
type Token struct{ text string }

// Lengths of tokens, in bytes. The shortest has 128 bits in base64.
const (
	minToken = 22
	maxToken = 512
)

// NewToken draws a token of 256 bits.
func NewToken() Token { return Token{randomText()} }

func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// ParseToken takes a token of the user's own: 22 to 512 visible characters of ASCII.
func ParseToken(text string) (Token, error) {
	switch {
	case len(text) < minToken:
		return Token{}, fmt.Errorf("a token of %d characters can be guessed: at least %d", len(text), minToken)
	case len(text) > maxToken:
		return Token{}, fmt.Errorf("a token of %d characters: at most %d", len(text), maxToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Token{}, errors.New("a token has visible characters of ASCII, and no blanks")
	}
	return Token{text}, nil
}

// String hides the token, so that no log has it.
func (t Token) String() string { return "(a token)" }

// Reveal is the token itself.
func (t Token) Reveal() string { return t.text }

func (t Token) isZero() bool { return t.text == "" }

// opens compares in a time that tells nothing.
func (t Token) opens(text string) bool {
	a, b := sha256.Sum256([]byte(t.text)), sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && !t.isZero()
}

// TokenFile reads a token from a file that must be the user's alone (mode 0600), and makes
// one if it is missing.
func TokenFile(path string) (Token, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|trust.OpenFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t := NewToken()
		return t, t.write(path)
	}
	if err != nil {
		return Token{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Token{}, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	if err := trust.PrivateFile(f); err != nil {
		return Token{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+16))
	if err != nil {
		return Token{}, err
	}
	t, err := ParseToken(strings.TrimSpace(string(text)))
	if err != nil {
		return Token{}, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// write makes the file, which must not be there.
func (t Token) write(path string) error {
	if _, err := trust.Folder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, t.text+"\n")
	return errors.Join(err, f.Close())
}
