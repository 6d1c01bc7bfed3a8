// Package topic is the one place that knows what topics and patterns of them are, and which match.
//
// A topic is tokens with dots between them: orders.eu.paid. In a pattern a token may be *, which
// matches any one token, and the last may be >, which matches one or more.
package topic

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a topic and of a pattern.
const (
	MaxBytes  = 256
	MaxTokens = 32
)

// Check says what is wrong with a topic.
func Check(topic string) error {
	if err := check(topic, false); err != nil {
		return fmt.Errorf("the topic %.60q: %w", topic, err)
	}
	return nil
}

// CheckPattern says what is wrong with a pattern.
func CheckPattern(pattern string) error {
	if err := check(pattern, true); err != nil {
		return fmt.Errorf("the pattern %.60q: %w", pattern, err)
	}
	return nil
}

func check(s string, pattern bool) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case len(s) > MaxBytes:
		return fmt.Errorf("it has %d bytes, at most %d", len(s), MaxBytes)
	case strings.Count(s, ".") >= MaxTokens:
		return fmt.Errorf("it has more than %d tokens", MaxTokens)
	case s[0] == '$':
		return errors.New("topics that begin with $ are reserved for the host")
	case !utf8.ValidString(s):
		return errors.New("it is not UTF-8")
	}
	for rest, more := s, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		switch {
		case token == "":
			return errors.New("a token is empty")
		case pattern && token == "*", pattern && token == ">" && !more:
			continue
		case pattern && token == ">":
			return errors.New("> can only be the last token")
		}
		for _, r := range token {
			switch {
			case r == '*' || r == '>':
				if pattern {
					return fmt.Errorf("%c stands for whole tokens only", r)
				}
				return fmt.Errorf("%c is for patterns", r)
			case unicode.IsSpace(r) || unicode.IsControl(r):
				return errors.New("a token has a space or a control character")
			}
		}
	}
	return nil
}

// Match reports whether a pattern matches a topic; both are valid.
func Match(pattern, topic string) bool { return Covers(pattern, topic) }

// Covers reports whether a pattern matches every topic that another one does; both are valid. A
// topic is a pattern that matches itself alone.
func Covers(pattern, other string) bool {
	for {
		p, restP, moreP := strings.Cut(pattern, ".")
		o, restO, moreO := strings.Cut(other, ".")
		switch {
		case p == ">":
			return true
		case o == ">" || p != "*" && p != o:
			return false
		case !moreP || !moreO:
			return moreP == moreO
		}
		pattern, other = restP, restO
	}
}
