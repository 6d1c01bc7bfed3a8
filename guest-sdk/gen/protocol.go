package main

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const actorPath = "github.com/wasmactors/wasmactors/guest-sdk/actor"

// protocol is an interface whose methods are messages: what has no answer is told, what has one is asked.
type protocol struct {
	name    string
	timeout time.Duration // 0: the SDK's
	methods []method      // in the order of the source
}

type method struct {
	name    string
	at      token.Pos
	takes   *message // nil: it is bound by a pattern
	pattern string   // what that begins with
	exact   bool     // the pattern is a whole name
	answer  *types.Named
	fails   bool // it returns an error, too
}

// protocol reads the methods, and refuses what is not clear.
func (c *collector) protocol(obj *types.TypeName, i *types.Interface) (protocol, error) {
	p := protocol{name: obj.Name(), timeout: c.said[obj.Name()].protocol.timeout}
	if i.NumMethods() == 0 {
		return p, c.fault(obj.Pos(), "the protocol %s has no methods", p.name)
	}
	for n := 0; n < i.NumMethods(); n++ {
		m, err := c.method(p.name, i.Method(n))
		if err != nil {
			return p, err
		}
		p.methods = append(p.methods, m)
	}
	slices.SortFunc(p.methods, func(a, b method) int { return cmp.Compare(a.at, b.at) })
	for n, m := range p.methods {
		for _, before := range p.methods[:n] {
			same := m.takes != nil && m.takes == before.takes
			if m.takes == nil && before.takes == nil {
				same = m.pattern == before.pattern && m.exact == before.exact
			}
			if same {
				return p, c.fault(m.at, "%s.%s and %s, at %s, are for the same messages: let one of them go, or give it a type or a pattern of its own",
					p.name, m.name, before.name, c.fset.Position(before.at))
			}
		}
	}
	for _, made := range []string{p.refName(), p.newName(), p.receiveName(), p.messageName()} {
		if other := c.pkg.Scope().Lookup(made); other != nil && c.fset.Position(other.Pos()).Filename != "" {
			return p, c.fault(other.Pos(), "%s is what the generator makes for the protocol %s, at %s: give one of them another name", made, p.name, c.fset.Position(obj.Pos()))
		}
	}
	return p, nil
}

func (c *collector) method(of string, f *types.Func) (method, error) {
	m := method{name: f.Name(), at: f.Pos()}
	sig := f.Type().(*types.Signature)
	bad := func(format string, args ...any) (method, error) {
		return m, c.fault(m.at, of+"."+m.name+": "+format, args...)
	}
	params := sig.Params()
	if params.Len() != 2 || sig.Variadic() || params.At(0).Type().String() != "*"+actorPath+".Context" {
		return bad("it must take (ctx *actor.Context, m *T), where T is a message")
	}
	if m.name == "Ref" || m.name == "WithTimeout" {
		return bad("the stub has a method of this name: choose another")
	}
	x := c.said[of+"."+m.name]
	switch t := params.At(1).Type(); {
	case t.String() == "*"+actorPath+".Message":
		if x.bind == "" {
			return bad("what messages is it for? Say %sbind and a pattern such as bank.* above it, or take a type of message", prefix)
		}
		begin, wild := strings.CutSuffix(x.bind, "*")
		m.pattern, m.exact = begin, !wild
	default:
		if x.bind != "" {
			return m, c.fault(x.bindAt, "%s.%s is bound to its type of message: %sbind goes with *actor.Message", of, m.name, prefix)
		}
		named := pointed(t)
		if named == nil || named.Obj().Pkg() != c.pkg || c.byType[named.Obj()] == nil {
			return bad("%s is not a pointer to a message of this package: a message is a struct with %smessage above it", name(t), prefix)
		}
		m.takes = c.byType[named.Obj()]
		if err := c.along(named.Obj()); err != nil {
			return m, err
		}
	}
	results := sig.Results()
	n := results.Len()
	if n > 0 && results.At(n-1).Type().String() == "error" {
		m.fails = true
		n--
	}
	if n > 1 {
		return bad("it must return nothing, an error, *R, or *R and an error")
	}
	if n == 1 {
		if m.answer = pointed(results.At(0).Type()); m.answer == nil || m.answer.Obj().Pkg() != c.pkg {
			return bad("it must return nothing, an error, *R, or *R and an error, where R is a struct of this package")
		}
		if err := c.along(m.answer.Obj()); err != nil {
			return m, err
		}
	}
	answer := ""
	if m.answer != nil {
		answer = m.answer.Obj().Name()
	}
	if m.takes == nil {
		if answer != "" {
			return bad("a method that takes any message answers with ctx.Reply: it must return nothing or an error")
		}
		return m, nil
	}
	if says := m.takes.answer; says != answer {
		want := "answer=" + answer
		if answer == "" {
			want = "no answer"
		}
		return m, c.fault(m.takes.at, "%s.%s, at %s, makes of the message %s one with %s, and the directive here says otherwise (%q): change one of them",
			of, m.name, c.fset.Position(m.at), m.takes.name, want, says)
	}
	return m, nil
}

// pointed is the named struct that a pointer points to.
func pointed(t types.Type) *types.Named {
	p, ok := t.(*types.Pointer)
	if !ok {
		return nil
	}
	n, ok := types.Unalias(p.Elem()).(*types.Named)
	if !ok {
		return nil
	}
	if _, ok := n.Underlying().(*types.Struct); !ok {
		return nil
	}
	return n
}

// affixed is a name with something before and behind it, exported if the name is.
func affixed(before, name, behind string) string {
	if before == "" {
		return name + behind
	}
	if !token.IsExported(name) {
		r := []rune(name)
		r[0] = unicode.ToUpper(r[0])
		return strings.ToLower(before[:1]) + before[1:] + string(r) + behind
	}
	return before + name + behind
}

func (p *protocol) refName() string     { return affixed("", p.name, "Ref") }
func (p *protocol) newName() string     { return affixed("New", p.name, "Ref") }
func (p *protocol) receiveName() string { return affixed("Receive", p.name, "") }
func (p *protocol) messageName() string { return affixed("", p.name, "Message") }

// protocol writes the stub, the dispatch, and the interface of what the protocol takes.
func (w *writer) protocol(p *protocol) {
	actor := w.use(actorPath, "actor")
	w.stub(p, actor)
	w.marker(p, actor)
	w.dispatch(p, actor)
}

func (w *writer) stub(p *protocol, actor string) {
	clock := w.use("time", "time")
	ref := p.refName()
	timeout := actor + ".DefaultTimeout"
	if p.timeout > 0 {
		timeout = w.durationOf(p.timeout, clock)
	}
	w.line("\n// %s sends to an actor that is a %s, or to a router in front of some.", ref, p.name)
	w.line("type %s struct {\nref %s.Ref\ntimeout %s.Duration\n}", ref, actor, clock)
	w.line("\n// %s trusts that the actor is a %s.", p.newName(), p.name)
	w.line("func %s(ref %s.Ref) %s { return %[3]s{ref, %s} }", p.newName(), actor, ref, timeout)
	w.line("\n// Ref is the actor.")
	w.line("func (s %s) Ref() %s.Ref { return s.ref }", ref, actor)
	w.line("\n// WithTimeout is s with another time for answers: 1 ms to 24 h.")
	w.line("func (s %s) WithTimeout(d %s.Duration) %[1]s {\ns.timeout = d\nreturn s\n}", ref, clock)
	for _, m := range p.methods {
		if m.takes == nil {
			continue
		}
		takes := m.takes.typ.Name()
		if m.answer == nil {
			w.line("\n// %s sends the message and does not wait.", m.name)
			w.line("func (s %s) %s(ctx *%s.Context, m *%s) { ctx.TellTyped(s.ref, m) }", ref, m.name, actor, takes)
			continue
		}
		answer := m.answer.Obj().Name()
		w.line("\n// %s asks, and calls then in a later turn: with the answer, or with an error.", m.name)
		w.line("func (s %s) %s(ctx *%s.Context, m *%s, then func(*%[3]s.Context, *%[5]s, error) error) {", ref, m.name, actor, takes, answer)
		w.line("%s.AskRef(ctx, %[1]s.To[*%s](s.ref), m, s.timeout, then)\n}", actor, takes)
	}
}

// durationOf writes a duration as a person would.
func (w *writer) durationOf(d time.Duration, clock string) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"}} {
		if d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + " * " + clock + "." + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10)
}

// marker writes the interface that all messages of a protocol have.
func (w *writer) marker(p *protocol, actor string) {
	mark := affixed("is", p.messageName(), "")
	w.line("\n// %s is what a %s takes: a ref of the type %s.RefOf[%[1]s] is told nothing else.", p.messageName(), p.name, actor)
	w.line("type %s interface {\n%s.Typed\n%s()\n}\n", p.messageName(), actor, mark)
	for _, m := range p.methods {
		if m.takes != nil {
			w.line("func (*%s) %s() {}", m.takes.typ.Name(), mark)
		}
	}
}

// binding is one method for a range of versions of a message.
type binding struct {
	method *method
	from   []uint16
}

// bindings says which method is for which version of a message: the one whose own version is the next from
// there on.
func (p *protocol) bindings() (names []string, of map[string][]binding) {
	of = map[string][]binding{}
	for i := range p.methods {
		m := &p.methods[i]
		if m.takes == nil {
			continue
		}
		b := binding{m, []uint16{m.takes.version}}
		for _, old := range m.takes.older {
			if slices.ContainsFunc(p.methods, func(o method) bool { return o.takes == old }) {
				break // that method is nearer to it, and to all before
			}
			b.from = append(b.from, old.version)
		}
		if of[m.takes.name] == nil {
			names = append(names, m.takes.name)
		}
		of[m.takes.name] = append(of[m.takes.name], b)
	}
	return names, of
}

func (w *writer) dispatch(p *protocol, actor string) {
	w.line("\n// %s has a %s handle a message. What is not a message of the protocol goes to its ReceiveOther, if it is", p.receiveName(), p.name)
	w.line("// an %s.Receiver, and is not handled otherwise.", actor)
	w.line("func %s(ctx *%s.Context, msg *%[2]s.Message, to %s) error {", p.receiveName(), actor, p.name)
	names, of := p.bindings()
	known, version := "name", "version"
	if len(names) == 0 {
		version = "_"
	}
	w.line("%s, %s, ok := msg.Type()\nif !ok {\nreturn %s.Other(ctx, msg, to)\n}", known, version, actor)
	if len(names) > 0 {
		w.line("switch name {")
	}
	for _, name := range names {
		w.line("case %q:\nswitch version {", name)
		for _, b := range of[name] {
			var list []string
			for _, v := range b.from {
				list = append(list, strconv.Itoa(int(v)))
			}
			w.line("case %s:", strings.Join(list, ", "))
			w.call(b.method, actor)
		}
		w.line("}")
	}
	if len(names) > 0 {
		w.line("}")
	}
	patterns := slices.DeleteFunc(slices.Clone(p.methods), func(m method) bool { return m.takes != nil })
	slices.SortStableFunc(patterns, func(a, b method) int { // the most specific first
		if a.exact != b.exact {
			if a.exact {
				return -1
			}
			return 1
		}
		return len(b.pattern) - len(a.pattern)
	})
	for _, m := range patterns {
		switch {
		case m.exact:
			w.line("if name == %q {", m.pattern)
		case m.pattern == "":
			w.line("{")
		default:
			w.line("if len(name) >= %d && name[:%[1]d] == %q {", len(m.pattern), m.pattern)
		}
		if m.fails {
			w.line("return to.%s(ctx, msg)\n}", m.name)
		} else {
			w.line("to.%s(ctx, msg)\nreturn nil\n}", m.name)
		}
	}
	if len(patterns) == 0 || patterns[len(patterns)-1].exact || patterns[len(patterns)-1].pattern != "" {
		w.line("return %s.Other(ctx, msg, to)", actor)
	}
	w.line("}")
}

// call writes the call of a method with a decoded message.
func (w *writer) call(m *method, actor string) {
	w.line("m := new(%s)\nif err := msg.DecodeTyped(m); err != nil {\nreturn err\n}", m.takes.typ.Name())
	switch {
	case m.answer == nil && m.fails:
		w.line("return to.%s(ctx, m)", m.name)
	case m.answer == nil:
		w.line("to.%s(ctx, m)\nreturn nil", m.name)
	default:
		if m.fails {
			w.line("answer, err := to.%s(ctx, m)\nif err != nil || answer == nil {\nreturn err\n}", m.name)
		} else {
			w.line("answer := to.%s(ctx, m)\nif answer == nil {\nreturn nil\n}", m.name)
		}
		if w.byType[m.answer.Obj()] != nil {
			w.line("return ctx.ReplyTyped(answer)")
		} else {
			w.line("return ctx.Reply(answer)")
		}
	}
}
