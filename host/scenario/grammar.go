package scenario

import (
	"encoding/json"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Shapes of scenario files, in short.
type (
	shape = grammar.Shape
	field = grammar.Field
)

var (
	boolean = grammar.Flags
	whole   = grammar.Whole
	list    = grammar.ListOf
	object  = grammar.ObjectOf
	may     = grammar.Optional
	must    = grammar.Required
)

// text is a text that is not empty.
func text(doc string, enum ...string) *shape {
	s := free(doc)
	s.Enum, s.Filled = enum, true
	return s
}

func free(doc string) *shape { return &shape{Kind: grammar.Text, Doc: doc} }

func span(doc string) *shape {
	s := grammar.Span(doc)
	s.Max = float64(MaxAdvance)
	return s
}

func texts(doc string) *shape {
	return &shape{Kind: grammar.Mapping, Doc: doc, Of: free("its value")}
}

func value(doc string) *shape { return own(doc, values) }
func like(doc string) *shape  { return own(doc, patterns) }

// own is a shape of one of the kinds that only scenarios have.
func own(doc string, kind *grammar.Own) *shape {
	return &shape{Kind: grammar.OwnKind, Doc: doc, Own: kind}
}

// checked has a value checked by one of the checker's own functions.
func checked(f func(c *checker, n *yaml.Node, s *shape, where string)) func(*grammar.Checker, *yaml.Node, *shape, string) {
	return func(c *grammar.Checker, n *yaml.Node, s *shape, where string) { f(&checker{c}, n, s, where) }
}

// The kinds of values that only scenarios have.
var (
	values   = &grammar.Own{Name: "a value", Check: checked((*checker).checkValue)}
	patterns = &grammar.Own{Name: "a value", Check: checked(func(c *checker, n *yaml.Node, _ *shape, _ string) { c.value(n, true) })}
	shares   = &grammar.Own{Name: "a duration or a percentage, such as 5ms or 20%", Check: checked((*checker).checkShare), Schema: schemaOfShare}
	moments  = &grammar.Own{Name: "a time such as 2026-01-31T09:00:00Z", Check: checked((*checker).checkTime), Schema: schemaOfTime}
)

// Most messages that a fault is about, and repetitions of a step.
const most = 1_000_000

// verb is what a step does: the key that names it, the value of that key, and the other keys.
type verb struct {
	name  string
	of    *shape
	keys  []field
	about bool // the value of the key is an actor
}

var within = may("within", span("how long it may take, in virtual time; default: 3s"))

// messages is for faults.
var messages = may("messages", whole("how many messages it is about; default: 1", 1, most))

// answers are the keys about the answer that must have come.
var answers = []field{
	may("message", value("what it is, exactly")),
	may("match", like(likeDoc)),
	may("headers", texts("headers that it has")),
}

const likeDoc = "what it is like: keys that are not named do not matter, and there are !any, !glob, !re, !min, !max, !sum, !type, !not"

const restIsText = "a pattern, where * and ? are wild"

// verbs are all that a step may do.
var verbs = withNodes([]verb{
	{"send", text("sends a message to an actor: the name of one at the top, or a path"), []field{
		must("message", value("the message, sent as CBOR")),
		may("from", text("the probe that sends it, and gets the answer; default: nobody")),
		may("headers", texts("its headers")),
		may("times", whole("how often; default: once", 1, 10_000)),
	}, true},
	{"ask", text("asks an actor, and waits for the answer"), []field{
		must("message", value("the question, sent as CBOR")),
		may("headers", texts("its headers")),
		may("answer", value("what the answer is, exactly")),
		may("match", like(likeDoc)),
		may("error", text("the answer is an error, or there is none: what its text is like; "+restIsText)),
		within,
	}, true},
	{"expect", text("waits for the next message of a probe"), append([]field{
		may("from", text("the path of its sender; "+restIsText)),
		may("error", text("it is an answer that is an error: what its text is like; "+restIsText)),
		within,
	}, answers...), false},
	{"expect-none", text("the probe has no message, and gets none"), []field{must("for", span("for so long, in virtual time"))}, false},
	{"reply", text("answers the oldest open question that a stand-in has been shown by expect"), []field{
		may("message", value("the answer")),
		may("error", text("the answer is this error")),
	}, false},
	{"advance", span("lets time pass, with all that falls due meanwhile"), nil, false},
	{"crash", text("makes an actor fail"), []field{
		may("on-message", whole("not at once but instead of handling the n-th message from now on", 1, most)),
		may("kind", text("the kind of failure; default: guest_error", kindsOfFailure()...)),
		may("reason", text("what the failure says")),
	}, true},
	{"stop", text("stops an actor, as an operator does"), nil, true},
	{"restart", text("restarts an actor, as an operator does"), nil, true},
	{"pause", text("pauses an actor; its messages queue"), nil, true},
	{"unpause", text("unpauses an actor"), nil, true},
	{"expect-restart", text("an actor fails and is restarted, or was since the last time that this was expected of it"), []field{
		may("after", span("how long after the failure")),
		may("tolerance", own("how much more or less that may be, where there is jitter; default: 0", shares)),
		may("cause", text("what the failure is like: kind, reason and message; "+restIsText)),
		within,
	}, true},
	{"expect-stopped", text("an actor stops for good, or has"), []field{
		may("reason", text("why; "+restIsText)),
		within,
	}, true},
	{"expect-event", text("something happens, or has since the last event that was expected", eventKinds()...), []field{
		may("actor", text("the path of the actor that it is about; "+restIsText)),
		may("text", text("what it says: a line of the log, a failure, why a message was not delivered; "+restIsText)),
		within,
	}, false},
	{"expect-request", text("the service http requests something, or has since the last request that was expected: its URL; " + restIsText), []field{
		may("method", text("its method")),
		may("match", like("what its body is like: JSON if it is, else a text")),
		may("headers", texts("headers that it has")),
		within,
	}, false},
	{"expect-state", text("how an actor is now"), []field{
		may("alive", boolean("whether there is such an actor")),
		may("state", text("what it does", states()...)),
		may("restarts", whole("how often it was restarted", 0, most)),
		may("crashes", whole("how many of its turns have failed", 0, most)),
		may("incarnation", whole("the number of its incarnation, the first is 0", 0, most)),
		may("mailbox", whole("messages that wait", 0, most)),
		may("children", whole("direct children", 0, most)),
	}, true},
	{"drop", text("messages to an actor of the manifest are lost"), []field{messages}, true},
	{"delay", text("messages to an actor of the manifest come later"), []field{must("by", span("how much later")), messages}, true},
	{"duplicate", text("messages to an actor of the manifest come twice"), []field{messages}, true},
	{"reorder", text("messages to an actor of the manifest are overtaken by the next one"), []field{messages}, true},
	{"http", list("further answers of web servers, which go before those of the scenario", fakeShape), nil, false},
	{"http", text("a request to the routes of the bundle, as METHOD /path?query, and its answer"), []field{
		may("headers", texts("its headers; host is the name that it is for")),
		may("body", free("its body")),
		may("json", value("its body, as JSON")),
		may("status", whole("the status of the answer; default: any from 200 to 299", 200, 599)),
		may("answer", value("what its body is, exactly; a text, or JSON")),
		may("match", like("what its body is like: JSON if it is, else a text")),
		may("answer-headers", texts("headers that it has")),
		within,
	}, false},
	{"websocket", text("a WebSocket to the routes of the bundle, by a name of its own: it is opened, says something, and hears something, in this order"), []field{
		may("open", text("opens it: /path?query")),
		may("headers", texts("open: headers of the request; host is the name that it is for")),
		may("status", whole("open: it is refused with this status", 200, 599)),
		may("say", value("sends a message: a text, bytes, or JSON")),
		may("answer", value("the next message, exactly: a text, bytes, or JSON")),
		may("match", like("what the next message is like: JSON if it is, else a text or bytes")),
		may("close", boolean("true: closes it")),
		may("closed", whole("it is closed by the other side, with this code", 1000, 4999)),
		within,
	}, false},
})

var fakeShape = object("an answer of a web server",
	must("url", text("of what requests; "+restIsText)),
	may("method", text("default: any")),
	may("status", whole("default: 200", 100, 599)),
	may("headers", texts("of the answer")),
	may("body", free("of the answer")),
	may("json", value("the body, as JSON")),
	may("error", text("instead of an answer: what is wrong with the connection")),
	may("delay", span("how long it takes, in virtual time")),
	may("times", whole("how many requests it answers; default: all", 1, most)),
)

// settings are the keys of a scenario, or of the defaults of a file, besides the steps.
var settings = []field{
	may("seed", whole("randomness, jitter and refs come from it; default: 1", 0, 1<<53)),
	may("start", own("the time at which it begins; default: 2026-01-01T00:00:00Z", moments)),
	may("nodes", nodesShape),
	may("config", texts("values of the service config: they replace those of the manifest")),
	may("secrets", texts("secrets of the service config; there are no others")),
	may("env", texts("variables of the environment, for services; there are no others")),
	may("http", list("answers of web servers: the first that fits, and is not used up", fakeShape)),
	may("stand-ins", list("actors that the scenario plays itself: a top-level name, or the path of an actor of the manifest", text("an actor"))),
	may("invariants", list("what must hold in simulations, whatever happens: see wasmactors simulate", invariantShape)),
	may("simulation", object("how the scenario is simulated: see wasmactors simulate",
		may("faults", text("the classes of faults that it withstands, such as all,-crash; default: all")),
		may("spare", texts("classes of faults that do not apply to actors, by their paths, where * and ? are wild, and ** at the end is all below")),
		may("lossy", list("actors whose messages may come twice and in another order, because they can deal with it", text("a path; * and ? are wild"))),
		may("bug", texts("variables of the manifest that choose a deliberate mistake, which wasmactors simulate --bug looks for")),
		may("settle", span("how long after the end of the faults every mailbox is empty and every ask has ended; default: 5m")),
	)),
}

// invariantShape is something that must hold.
var invariantShape = object("an invariant",
	must("name", text("its name, in reports")),
	may("ask", text("asks an actor: the name of one at the top, or a path")),
	may("message", value("the question")),
	may("answer", value("what the answer is, exactly")),
	may("match", like(likeDoc)),
	may("error", text("the answer is an error: what its text is like; "+restIsText)),
	may("when", text("end (default): when the faults are over and all is at rest; always: at moments that the seed chooses, too; eventually: it is asked every second, and holds once before settle is over", "end", "always", "eventually")),
	may("within", span("how long the answer may take, in virtual time; default: 3s")),
	may("grows", boolean("the answer is a number, and never less than one that was known when it was asked for; default: false")),
	may("auditor", text("instead of ask: an actor that fails when something is wrong")),
)

// stepShape is a step, whose keys depend on each other.
var stepShape = own("a step", &grammar.Own{Name: "a mapping", Schema: schemaOfSteps, Check: checked(func(c *checker, n *yaml.Node, _ *shape, _ string) { c.step(n) })})

var fileShape = object("the scenarios of a bundle",
	may("defaults", object("what holds for scenarios that do not say otherwise", settings...)),
	must("scenarios", list("what is tried, each in a system of its own", object("a scenario", slices.Concat([]field{
		must("name", text("its name")),
		may("skip", text("it is not run: why")),
		must("steps", list("what happens, one after the other", stepShape)),
	}, settings)...))),
)

func verbNames() []string {
	var names []string
	for _, v := range verbs {
		if !slices.Contains(names, v.name) { // some have two meanings
			names = append(names, v.name)
		}
	}
	return names
}

func kindsOfFailure() (names []string) {
	for _, k := range abi.FailureKinds() {
		names = append(names, k.String())
	}
	return names
}

func eventKinds() (names []string) {
	for k := host.EventStarted; k <= host.EventUnpaused; k++ {
		names = append(names, k.String())
	}
	return names
}

func states() (names []string) {
	for s := host.StateRunning; s <= host.StateStopping; s++ {
		names = append(names, s.String())
	}
	return names
}

// Schema is the JSON Schema (draft 2020-12) of scenario files.
func Schema() []byte {
	root := grammar.SchemaOptions{}.Schema(fileShape)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/wasmactors/wasmactors/docs/scenario.schema.json"
	root["title"] = "wasmactors scenarios"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return append(out, '\n')
}

// shapeOf is the shape of a step with the verb.
func (v *verb) shapeOf() *shape {
	return object("", append([]field{must(v.name, v.of)}, v.keys...)...)
}

// schemaOfSteps is the schema of a step: one of the verbs, each with its own keys.
func schemaOfSteps(_ *shape, to map[string]any, o grammar.SchemaOptions) {
	var one []any
	for i := range verbs {
		one = append(one, o.Schema(verbs[i].shapeOf()))
	}
	delete(to, "description")
	to["oneOf"] = one
}

func schemaOfShare(_ *shape, to map[string]any, _ grammar.SchemaOptions) {
	to["type"], to["pattern"] = []string{"integer", "string"}, `^(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+|[0-9]+(\.[0-9]+)?%)$`
}

func schemaOfTime(_ *shape, to map[string]any, _ grammar.SchemaOptions) {
	to["type"], to["format"] = "string", "date-time"
}
