package sql

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// SQLite checks whether a statement must end between the steps of its program, never within a function.
// These built-in functions take time proportional to the product of their arguments' sizes: minutes for
// one call with texts of a megabyte. They are replaced by ones that give the same results, that take
// linear time or check while they work, and that fail once the statement must end. The price is that LIKE
// 'abc%' does not use an index; ranges do.

// functions are the replacements.
var functions = []struct {
	name string
	args int
	f    sqlite3.ScalarFunction
}{
	{"like", 2, like}, {"like", 3, like}, {"glob", 2, glob},
	{"instr", 2, instr}, {"replace", 3, replace}, {"unhex", 2, unhex},
	{"trim", 1, trimmer(true, true)}, {"trim", 2, trimmer(true, true)},
	{"ltrim", 1, trimmer(true, false)}, {"ltrim", 2, trimmer(true, false)},
	{"rtrim", 1, trimmer(false, true)}, {"rtrim", 2, trimmer(false, true)},
}

func replaceFunctions(c *sqlite3.Conn) error {
	for _, f := range functions {
		run := func(ctx sqlite3.Context, args ...sqlite3.Value) {
			if ctx.Conn().GetInterrupt().Err() != nil {
				ctx.ResultError(sqlite3.INTERRUPT)
				return
			}
			f.f(ctx, args...)
		}
		if err := c.CreateFunction(f.name, f.args, sqlite3.DETERMINISTIC|sqlite3.INNOCUOUS, run); err != nil {
			return err
		}
	}
	return nil
}

// anyNull reports whether one of the arguments is null, and makes the result null then.
func anyNull(ctx sqlite3.Context, args []sqlite3.Value) bool {
	for _, a := range args {
		if a.Type() == sqlite3.NULL {
			ctx.ResultNull()
			return true
		}
	}
	return false
}

// like is like(pattern, text[, escape]).
func like(ctx sqlite3.Context, args ...sqlite3.Value) {
	escape := rune(-1)
	if len(args) == 3 {
		if args[2].Type() == sqlite3.NULL {
			ctx.ResultNull()
			return
		}
		e := args[2].RawText()
		if utf8.RuneCount(e) != 1 {
			ctx.ResultError(errEscape)
			return
		}
		escape, _ = utf8.DecodeRune(e)
	}
	match(ctx, args, func(pattern []byte) (token, int) { return likeToken(pattern, escape) })
}

type textError string

func (e textError) Error() string { return string(e) }

const errEscape textError = "ESCAPE expression must be a single character"

// glob is glob(pattern, text).
func glob(ctx sqlite3.Context, args ...sqlite3.Value) { match(ctx, args, globToken) }

// match matches args[1] with args[0]. A blob matches nothing, as in SQLite's build that this is.
func match(ctx sqlite3.Context, args []sqlite3.Value, next func([]byte) (token, int)) {
	if args[0].Type() == sqlite3.BLOB || args[1].Type() == sqlite3.BLOB {
		ctx.ResultBool(false)
		return
	}
	if anyNull(ctx, args[:2]) {
		return
	}
	ok, over := matches(ctx.Conn().GetInterrupt(), args[0].RawText(), args[1].RawText(), next)
	if over {
		ctx.ResultError(sqlite3.INTERRUPT)
		return
	}
	ctx.ResultBool(ok)
}

// token is one element of a pattern.
type token struct {
	kind tokenKind
	r    rune   // one
	set  []byte // set: the characters between the brackets
	not  bool   // set: matches characters that are not in it
}

type tokenKind uint8

const (
	one   tokenKind = iota // the rune r
	fold                   // r or, in ASCII, the same letter of the other case
	any1                   // any rune
	star                   // any number of runes
	set                    // one of a set
	never                  // nothing matches
)

// likeToken returns the first element of a LIKE pattern and its length.
func likeToken(p []byte, escape rune) (token, int) {
	r, n := utf8.DecodeRune(p)
	if r == escape {
		if n == len(p) {
			return token{kind: never}, n
		}
		r, m := utf8.DecodeRune(p[n:])
		return token{kind: fold, r: lower(r)}, n + m
	}
	switch r {
	case '%':
		return token{kind: star}, n
	case '_':
		return token{kind: any1}, n
	}
	return token{kind: fold, r: lower(r)}, n
}

// globToken returns the first element of a GLOB pattern and its length.
func globToken(p []byte) (token, int) {
	r, n := utf8.DecodeRune(p)
	switch r {
	case '*':
		return token{kind: star}, n
	case '?':
		return token{kind: any1}, n
	case '[':
		t, at := token{kind: set}, 1
		if at < len(p) && p[at] == '^' {
			t.not, at = true, at+1
		}
		from := at
		if at < len(p) && p[at] == ']' { // the first one is literal
			at++
		}
		end := bytes.IndexByte(p[at:], ']')
		if end < 0 {
			return token{kind: never}, len(p)
		}
		t.set = p[from : at+end]
		return t, at + end + 1
	}
	return token{kind: one, r: r}, n
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// has reports whether t matches r.
func (t *token) has(r rune) bool {
	switch t.kind {
	case one:
		return t.r == r
	case fold:
		return t.r == lower(r)
	case any1:
		return true
	case set:
		return inSet(t.set, r) != t.not
	}
	return false
}

// inSet reports whether r is one of a set such as a-z0.
func inSet(s []byte, r rune) bool {
	prior, in := rune(-1), false
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRune(s[i:])
		if c == '-' && prior >= 0 && i+n < len(s) {
			to, m := utf8.DecodeRune(s[i+n:])
			in = in || prior <= r && r <= to
			prior, i = -1, i+n+m
			continue
		}
		in = in || c == r
		prior, i = c, i+n
	}
	return in
}

// stepsBetween is after how many steps matches checks whether the statement must end.
const stepsBetween = 1 << 14

// matches reports whether a pattern matches the whole of a text. It backtracks only to the last
// star, which is enough, so it takes at most the product of the lengths.
func matches(ctx context.Context, pattern, text []byte, next func([]byte) (token, int)) (ok, over bool) {
	p, t := 0, 0
	backP, backT := -1, 0
	for steps := 1; t < len(text) || p < len(pattern); steps++ {
		if steps%stepsBetween == 0 && ctx.Err() != nil {
			return false, true
		}
		if p < len(pattern) {
			tok, n := next(pattern[p:])
			if steps += len(tok.set); tok.kind == star {
				p += n
				backP, backT = p, t
				continue
			}
			if t < len(text) {
				if r, m := utf8.DecodeRune(text[t:]); tok.has(r) {
					p, t = p+n, t+m
					continue
				}
			}
		}
		if backP < 0 || backT >= len(text) {
			return false, false
		}
		_, m := utf8.DecodeRune(text[backT:])
		backT += m
		p, t = backP, backT
	}
	return true, false
}

// instr is instr(text, part): the position of part in characters, from 1, or 0.
func instr(ctx sqlite3.Context, args ...sqlite3.Value) {
	if anyNull(ctx, args) {
		return
	}
	if args[0].Type() == sqlite3.BLOB && args[1].Type() == sqlite3.BLOB {
		ctx.ResultInt(bytes.Index(args[0].RawBlob(), args[1].RawBlob()) + 1)
		return
	}
	s := args[0].RawText()
	at := bytes.Index(s, args[1].RawText())
	if at > 0 {
		at = utf8.RuneCount(s[:at])
	}
	ctx.ResultInt(at + 1)
}

// replace is replace(text, old, new).
func replace(ctx sqlite3.Context, args ...sqlite3.Value) {
	if anyNull(ctx, args) {
		return
	}
	s, from, to := args[0].RawText(), args[1].RawText(), args[2].RawText()
	if len(from) == 0 {
		ctx.ResultRawText(s)
		return
	}
	n := bytes.Count(s, from)
	if most := ctx.Conn().Limit(sqlite3.LIMIT_LENGTH, -1); len(s)+n*(len(to)-len(from)) > most {
		ctx.ResultError(sqlite3.TOOBIG)
		return
	}
	ctx.ResultRawText(bytes.ReplaceAll(s, from, to))
}

// trimmer is trim(text[, characters]).
func trimmer(left, right bool) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if anyNull(ctx, args) {
			return
		}
		in := func(r rune) bool { return r == ' ' }
		if len(args) == 2 {
			in = runesOf(args[1].RawText())
		}
		s := args[0].RawText()
		if left {
			s = bytes.TrimLeftFunc(s, in)
		}
		if right {
			s = bytes.TrimRightFunc(s, in)
		}
		ctx.ResultRawText(s)
	}
}

// runesOf is the set of a text's runes.
func runesOf(s []byte) func(rune) bool {
	var ascii [utf8.RuneSelf]bool
	var rest map[rune]bool
	for _, r := range string(s) {
		if r < utf8.RuneSelf {
			ascii[r] = true
			continue
		}
		if rest == nil {
			rest = map[rune]bool{}
		}
		rest[r] = true
	}
	return func(r rune) bool {
		if r < utf8.RuneSelf {
			return ascii[r]
		}
		return rest[r]
	}
}

// unhex is unhex(text, characters to skip): null if the text has any other character, or one
// within a byte.
func unhex(ctx sqlite3.Context, args ...sqlite3.Value) {
	if anyNull(ctx, args) {
		return
	}
	ignore := runesOf(args[1].RawText())
	out := make([]byte, 0, 64)
	high := -1
	for _, r := range string(args[0].RawText()) {
		d := strings.IndexRune("0123456789abcdef", lower(r))
		switch {
		case d < 0 && high < 0 && ignore(r):
		case d < 0:
			ctx.ResultNull()
			return
		case high < 0:
			high = d
		default:
			out, high = append(out, byte(high<<4|d)), -1
		}
	}
	if high >= 0 {
		ctx.ResultNull()
		return
	}
	ctx.ResultBlob(out)
}
