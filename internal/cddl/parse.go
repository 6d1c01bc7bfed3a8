package cddl

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse reads a file; name is what positions say. The error is an *Error. What is wrong is described by its place and
// its kind: of the contents only names of rules are repeated.
func Parse(name string, text []byte) (f *File, err error) {
	if len(text) > MaxBytes {
		return nil, &Error{Pos{name, 1, 1}, "the file is larger than 1 MiB"}
	}
	if !utf8.Valid(text) {
		return nil, &Error{Pos{name, 1, 1}, "the file is not UTF-8"}
	}
	p := &parser{text: string(text), pos: Pos{name, 1, 1}}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			f, err = nil, bad
		}
	}()
	p.next()
	f = &File{rules: map[string]*rule{}}
	for p.kind != end {
		at, name := p.at, p.token
		p.want(word, "the name of a rule")
		p.wantSign("=", "after the name of a rule")
		if prelude(name, at) != nil {
			p.fail(at, "the rule %s has a name that CDDL predefines: choose another", name)
		}
		if old := f.rules[name]; old != nil {
			p.fail(at, "the rule %s is defined twice, first at %s", name, old.at)
		}
		if len(f.names) == maxRules {
			p.fail(at, "more than %d rules", maxRules)
		}
		f.rules[name], f.names = &rule{at, p.typ(0)}, append(f.names, name)
	}
	for _, u := range p.uses {
		if f.rules[u.name] == nil {
			p.fail(u.at, "there is no rule %s", u.name)
		}
	}
	f.circles(p)
	return f, nil
}

// circles refuses rules that are nothing but names of each other.
func (f *File) circles(p *parser) {
	const under, done = 1, 2
	state := make(map[string]int, len(f.names))
	var enter func(name string)
	var walk func(n *node)
	walk = func(n *node) {
		switch n.kind {
		case kindRule:
			enter(n.name)
		case kindChoice:
			for _, c := range n.choice {
				walk(c)
			}
		}
	}
	enter = func(name string) {
		switch state[name] {
		case done:
			return
		case under:
			p.fail(f.rules[name].at, "the rule %s is defined by itself", name)
		}
		state[name] = under
		walk(f.rules[name].is)
		state[name] = done
	}
	for _, name := range f.names {
		enter(name)
	}
}

type tokenKind uint8

const (
	end tokenKind = iota
	word
	number
	quoted
	sign
)

type parser struct {
	text  string
	pos   Pos // of what is not read yet
	kind  tokenKind
	token string
	at    Pos
	uses  []*node
}

func (p *parser) fail(at Pos, format string, args ...any) {
	panic(&Error{at, fmt.Sprintf(format, args...)})
}

// take moves over n bytes of one line.
func (p *parser) take(n int) string {
	s := p.text[:n]
	p.text, p.pos.Column = p.text[n:], p.pos.Column+utf8.RuneCountInString(s)
	return s
}

// next reads a token.
func (p *parser) next() {
	for p.text != "" {
		switch c := p.text[0]; {
		case c == '\n':
			p.text, p.pos.Line, p.pos.Column = p.text[1:], p.pos.Line+1, 1
			continue
		case c == ' ' || c == '\t' || c == '\r':
			p.take(1)
			continue
		case c == ';':
			n := strings.IndexByte(p.text, '\n')
			if n < 0 {
				n = len(p.text)
			}
			p.take(n)
			continue
		}
		break
	}
	p.at = p.pos
	if p.kind, p.token = end, ""; p.text == "" {
		return
	}
	c := p.text[0]
	switch {
	case letter(c):
		n := 1
		for n < len(p.text) {
			if letter(p.text[n]) || digit(p.text[n]) {
				n++
			} else if m := p.inside(n); m > n {
				n = m
			} else {
				break
			}
		}
		if n > maxName {
			p.fail(p.at, "a name of more than %d bytes", maxName)
		}
		p.kind, p.token = word, p.take(n)
	case digit(c), c == '-' && len(p.text) > 1 && digit(p.text[1]):
		n := 1
		for n < len(p.text) && digit(p.text[n]) {
			n++
		}
		p.kind, p.token = number, p.take(n)
	case c == '"':
		p.quoted()
	default:
		for _, s := range []string{"=>", "..", "{", "}", "[", "]", "(", ")", "=", "/", "?", "*", ":", ",", "."} {
			if strings.HasPrefix(p.text, s) {
				if strings.HasPrefix(p.text, "...") || strings.HasPrefix(p.text, "//") || strings.HasPrefix(p.text, "/=") {
					break
				}
				p.kind, p.token = sign, p.take(len(s))
				return
			}
		}
		p.fail(p.at, "unsupported: only CDDL as guest-sdk/gen writes it is read, see docs/guide/messages.md")
	}
}

// inside is where a run of . and - ends that is part of a name: something of the name follows. It is n if
// there is none.
func (p *parser) inside(n int) int {
	m := n
	for m < len(p.text) && (p.text[m] == '.' || p.text[m] == '-') {
		m++
		if m < len(p.text) && p.text[m-1] == '.' && p.text[m] == '.' {
			return n // a range
		}
	}
	if m < len(p.text) && (letter(p.text[m]) || digit(p.text[m])) {
		return m
	}
	return n
}

func letter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '@' || c == '_' || c == '$'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (p *parser) quoted() {
	for n := 1; n < len(p.text) && p.text[n] != '\n'; n++ {
		switch p.text[n] {
		case '\\':
			n++
		case '"':
			raw := p.take(n + 1)
			s, err := strconv.Unquote(raw)
			if err != nil {
				p.fail(p.at, "a text with an unsupported escape")
			}
			p.kind, p.token = quoted, s
			return
		}
	}
	p.fail(p.at, "a text without an end")
}

func (p *parser) want(k tokenKind, what string) {
	if p.kind != k {
		p.fail(p.at, "expected %s", what)
	}
	p.next()
}

func (p *parser) is(s string) bool { return p.kind == sign && p.token == s }

func (p *parser) wantSign(s, where string) {
	if !p.is(s) {
		p.fail(p.at, "expected %s, %s", s, where)
	}
	p.next()
}

// typ reads a choice.
func (p *parser) typ(depth int) *node {
	n := p.one(depth)
	if !p.is("/") {
		return n
	}
	c := &node{at: n.at, kind: kindChoice, choice: []*node{n}}
	for p.is("/") {
		p.next()
		c.choice = append(c.choice, p.one(depth))
	}
	return c
}

func (p *parser) one(depth int) *node {
	if depth > maxDepth {
		p.fail(p.at, "nested too deeply")
	}
	at := p.at
	switch {
	case p.kind == number:
		low := p.integer()
		high := low
		if p.is("..") {
			p.next()
			high = p.integer()
		}
		if low.Cmp(high) > 0 {
			p.fail(at, "a range that ends before it begins")
		}
		return &node{at: at, kind: kindInt, low: low, high: high}
	case p.is("("):
		p.next()
		n := p.typ(depth + 1)
		p.wantSign(")", "at the end of a type in parentheses")
		return n
	case p.is("["):
		return p.array(depth)
	case p.is("{"):
		return p.group(depth)
	}
	name := p.token
	p.want(word, "a type")
	n := prelude(name, at)
	if n == nil {
		n = &node{at: at, kind: kindRule, name: name}
		p.uses = append(p.uses, n)
	}
	if n.kind == kindBytes && p.is(".") {
		p.next()
		if p.token != "size" {
			p.fail(p.at, "the only supported control is .size")
		}
		p.next()
		n.size = p.count()
	}
	return n
}

func (p *parser) integer() *big.Int {
	n, ok := new(big.Int).SetString(p.token, 10)
	if p.kind != number || !ok || len(p.token) > 21 || n.Cmp(leastInt) < 0 || n.Cmp(mostUint) > 0 {
		p.fail(p.at, "expected an integer of 64 bits")
	}
	p.next()
	return n
}

func (p *parser) count() int64 {
	at := p.at
	n := p.integer()
	if n.Sign() < 0 || !n.IsInt64() {
		p.fail(at, "expected a count")
	}
	return n.Int64()
}

func (p *parser) array(depth int) *node {
	n := &node{at: p.at, kind: kindArray, min: 0, max: -1}
	p.next()
	if p.kind == number {
		n.min = p.count()
	}
	star := p.at
	p.wantSign("*", "in an array: how many elements there are, as in [* type] or [2*2 type]")
	if p.kind == number && p.at.Line == star.Line && p.at.Column == star.Column+1 { // without a blank between
		at := p.at
		if n.max = p.count(); n.max < n.min {
			p.fail(at, "a range that ends before it begins")
		}
	}
	n.of = p.typ(depth + 1)
	p.wantSign("]", "at the end of an array")
	return n
}

// group reads a map: of keys, or from one type to another.
func (p *parser) group(depth int) *node {
	n := &node{at: p.at, kind: kindKeys, keys: map[string]int{}}
	p.next()
	for !p.is("}") {
		if p.is("*") {
			p.next()
			key := p.typ(depth + 1)
			p.wantSign("=>", "behind the type of keys")
			of := p.typ(depth + 1)
			if p.is(",") {
				p.next()
			}
			if !p.is("}") {
				p.fail(p.at, "expected }: * any => any must come last")
			}
			if n.open = key.kind == kindAny && of.kind == kindAny; !n.open {
				if len(n.fields) > 0 {
					p.fail(key.at, "unsupported: besides single keys, only * any => any is read")
				}
				n.kind, n.key, n.of = kindTable, key, of
			}
			break
		}
		f := field{at: p.at}
		if p.is("?") {
			f.optional = true
			p.next()
			f.at = p.at
		}
		switch p.kind {
		case quoted, word:
			f.key = strconv.Quote(p.token)
			p.next()
		case number:
			f.key = p.integer().String()
		default:
			p.fail(p.at, "expected a key: a text, an integer, or * any")
		}
		if old, twice := n.keys[f.key]; twice {
			p.fail(f.at, "the key comes twice, first at %s", n.fields[old].at)
		}
		n.keys[f.key] = len(n.fields)
		p.wantSign(":", "behind a key")
		f.is = p.typ(depth + 1)
		n.fields = append(n.fields, f)
		if !p.is(",") {
			break
		}
		p.next()
	}
	p.wantSign("}", "at the end of a map")
	return n
}
