//go:build !wasip1

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"
)

// signedHeaders are those of a hook of the shop, names and values in turn.
func signedHeaders(id string, at time.Time, body string) []string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	return []string{"content-type", "application/json", "webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", signature(secretOfShop, id, timestamp, body)}
}

func signature(secret, id, timestamp, body string) string {
	key, err := signingKey([]byte(secret))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// The example of the standard's own libraries.
func TestStandardWebhooks(t *testing.T) {
	key, err := signingKey([]byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSigned("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	if err != nil || !s.by(key, []byte(`{"test": 2432232314}`)) || s.by(key, []byte(`{"test": 2432232315}`)) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSigned(t *testing.T) {
	good := signature(secretOfShop, "id", "100", "body")
	other := signature("whsec_"+strings.Repeat("B", 32), "id", "100", "body")
	for _, c := range []struct {
		id, timestamp, signature string
		parsed, right            bool
	}{
		{"id", "100", good, true, true},
		{"id", "100", other, true, false},
		{"id", "100", other + " " + good, true, true},
		{"id", "100", good + " " + other, true, true},
		{"id", "100", "v9,anything " + good, true, true},
		{"id", "0100", good, true, false}, // what was signed is the text
		{"id2", "100", good, true, false},
		{"id", "101", good, true, false},
		{"id", "100", "v1,A" + good[4:], true, false},
		{"", "100", good, false, false},
		{"i.d", "100", good, false, false},
		{"i d", "100", good, false, false},
		{"i\x00d", "100", good, false, false},
		{"idé", "100", good, false, false},
		{strings.Repeat("x", mostDelivery), "100", good, true, false},
		{strings.Repeat("x", mostDelivery+1), "100", good, false, false},
		{"id", "", good, false, false},
		{"id", "-100", good, false, false},
		{"id", "+100", good, false, false},
		{"id", "1e2", good, false, false},
		{"id", "100000000000", good, false, false},
		{"id", "100", "", false, false},
		{"id", "100", "v1", false, false},
		{"id", "100", "v1,", false, false},
		{"id", "100", good[:len(good)-1], false, false},
		{"id", "100", "v1,AAAA", false, false},
		{"id", "100", "v9,anything", false, false},
		{"id", "100", "v1a" + good[2:], false, false},
		{"id", "100", strings.Repeat(other+" ", mostSignatures-1) + good, true, true},
		{"id", "100", strings.Repeat(other+" ", mostSignatures) + good, false, false},
		{"id", "100", good + strings.Repeat(" ", mostHeader), false, false},
	} {
		key, _ := signingKey([]byte(secretOfShop))
		s, err := parseSigned(c.id, c.timestamp, c.signature)
		if (err == nil) != c.parsed || err == nil && s.by(key, []byte("body")) != c.right {
			t.Errorf("%q %q %q: %v", c.id, c.timestamp, c.signature, err)
		}
	}
}

func TestFresh(t *testing.T) {
	s, _ := parseSigned("id", "1000", signature(secretOfShop, "id", "1000", ""))
	for _, c := range []struct {
		now  int64
		want bool
	}{{1000, true}, {1300, true}, {1301, false}, {700, true}, {699, false}, {1 << 40, false}, {-1 << 40, false}} {
		if got := s.fresh(time.Unix(c.now, 0), 5*time.Minute); got != c.want {
			t.Errorf("at %d: %v", c.now, got)
		}
	}
}

func TestSigningKey(t *testing.T) {
	for secret, want := range map[string]int{
		secretOfShop: 32, " " + secretOfShop + "\n": 32, "whsec_" + strings.Repeat("A", 32): 24, "whsec_" + strings.Repeat("A", 84) + "AA==": 64,
		"": 0, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=": 0, "whsec_": 0, "whsec_" + strings.Repeat("A", 28): 0, "whsec_" + strings.Repeat("A", 88): 0, "whsec_!": 0,
	} {
		if key, err := signingKey([]byte(secret)); len(key) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d bytes, %v", secret, len(key), err)
		}
	}
}

// Whatever the headers are, what is taken from them is within its bounds, and only who has the key has signed it.
func FuzzSigned(f *testing.F) {
	f.Add("id", "100", signature(secretOfShop, "id", "100", "body"), []byte("body"))
	f.Add("msg_1", "01", "v1,AAAA v2,x v1,", []byte{})
	f.Add("a.b", "99999999999", "v1,"+strings.Repeat("A", 43)+"=", []byte{0})
	key, _ := signingKey([]byte(secretOfShop))
	f.Fuzz(func(t *testing.T, id, timestamp, header string, body []byte) {
		s, err := parseSigned(id, timestamp, header)
		if err != nil {
			return
		}
		if !validDelivery(s.delivery) || s.delivery != id || s.timestamp != timestamp || s.sent.Unix() < 0 || len(s.signatures) == 0 || len(s.signatures) > mostSignatures {
			t.Fatalf("%+v", s)
		}
		if want := signature(secretOfShop, id, timestamp, string(body)); s.by(key, body) != strings.Contains(" "+strings.Join(strings.Fields(header), " ")+" ", " "+want+" ") {
			t.Fatalf("%q %q %q %q", id, timestamp, header, body)
		}
		s.fresh(begin, time.Minute)
	})
}
