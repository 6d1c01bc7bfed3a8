package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// signed is what the headers of a hook say, as Standard Webhooks (standardwebhooks.com) has them.
type signed struct {
	delivery   string
	timestamp  string // as it was sent: that is what was signed
	sent       time.Time
	signatures [][]byte
}

// Bounds of the headers.
const (
	mostDelivery   = 256
	mostSignatures = 8 // a sender that changes its secret signs with the old one and the new one
	mostHeader     = 1024
)

// parseSigned reads webhook-id, webhook-timestamp and webhook-signature.
func parseSigned(id, timestamp, signature string) (s signed, err error) {
	if !validDelivery(id) {
		return s, errors.New("webhook-id: 1 to 256 visible characters without a dot are needed")
	}
	if len(timestamp) == 0 || len(timestamp) > 11 || strings.Trim(timestamp, "0123456789") != "" {
		return s, errors.New("webhook-timestamp: seconds since 1970 are needed")
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return s, errors.New("webhook-timestamp: seconds since 1970 are needed")
	}
	s = signed{delivery: id, timestamp: timestamp, sent: time.Unix(seconds, 0)}
	if len(signature) > mostHeader {
		return s, errors.New("webhook-signature: it is too long")
	}
	for _, part := range strings.Fields(signature) {
		version, text, ok := strings.Cut(part, ",")
		if !ok {
			return s, errors.New("webhook-signature: a list of v1,BASE64 is needed, with spaces between")
		}
		if version != "v1" {
			continue // there may be later ones
		}
		sum, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return s, errors.New("webhook-signature: v1 is not the base64 of 32 bytes")
		}
		if s.signatures = append(s.signatures, sum); len(s.signatures) > mostSignatures {
			return s, errors.New("webhook-signature: there are too many")
		}
	}
	if len(s.signatures) == 0 {
		return s, errors.New("webhook-signature: there is not one of v1")
	}
	return s, nil
}

func validDelivery(id string) bool {
	for i := 0; i < len(id); i++ {
		if id[i] <= ' ' || id[i] > '~' || id[i] == '.' { // dots are between what is signed
			return false
		}
	}
	return id != "" && len(id) <= mostDelivery
}

// fresh reports whether it was sent about now: what was overheard cannot be sent again later.
func (s *signed) fresh(now time.Time, tolerance time.Duration) bool {
	age := now.Sub(s.sent)
	return age <= tolerance && age >= -tolerance
}

// by reports whether one of the signatures was made with the key. Neither which one it is, nor where a wrong one
// differs, can be told from the time that it takes.
func (s *signed) by(key, body []byte) bool {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(s.delivery + "." + s.timestamp + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	right := false
	for _, sum := range s.signatures {
		if hmac.Equal(sum, want) {
			right = true
		}
	}
	return right
}

// signingKey is what a secret stands for: whsec_ and the base64 of 24 to 64 bytes.
func signingKey(secret []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(string(secret)), "whsec_")
	if !ok {
		return nil, errors.New("it does not begin with whsec_")
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("behind whsec_ there must be the base64 of 24 to 64 bytes")
	}
	return key, nil
}
