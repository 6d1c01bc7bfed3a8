package bundle

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

const (
	nameRule   = `^[A-Za-z0-9_.~-]{1,255}$`
	nameWhat   = "a valid name: 1 to 255 of A-Z a-z 0-9 _ . ~ -, but not . or .."
	moduleRule = `^[A-Za-z0-9_.~-]{1,64}$`
	typeRule   = `^[A-Za-z0-9_.~/-]{1,193}$`
	pathRule   = `^/user(/[^/\s]+)+$`
	pathWhat   = "a path such as /user/a/b, where * and ? stand for parts of an element and ** at the end for everything below"
)

// plain is the shape of a whole manifest that knows no services.
var plain, _ = grammarOf(nil)

// grammarOf is the grammar with the keys of services.
func grammarOf(kinds []service.Kind) (root, actor *shape) {
	actors := names("the actors, started in this order", &shape{Kind: grammar.Ref, Doc: "an actor", Name: actorName, Self: func() *shape { return actor }})
	capabilities := capabilitiesWith(kinds)
	actor = actorWith(actors, capabilities)
	root = object("a bundle",
		required("wasmactors", integer("version of the manifest's format: 1", 1, 1)),
		required("name", pattern(none, "name of the bundle and of its actor system", nameWhat, nameRule).But(".", "..")),
		optional("description", text(none, "what the bundle is, for people")),
		required("modules", mapping("the code: WebAssembly modules by name", "a valid module name", moduleRule, moduleShape).But(".", "..")),
		optional("limits", limitsShape),
		optional("supervision", supervisionShape),
		optional("system", object("what all actors together may use",
			optional("memory", sizeIn("bytes that the host holds for all actors; default: three quarters of the machine's", leastSystem, 1<<50)),
			optional("actors", count("actors; default: any number", 1<<30)),
		)),
		optional("idle", object("when actors give their instances back until the next message",
			optional("after", duration("time without a message; 0: never; default: 30s")),
			optional("awake", count("how many actors should have an instance at most; default: any number", 1<<24)),
		)),
		optional("store", storeShape),
		optional("recorder", recorderShape),
		optional("cluster", clusterShape),
		required("actors", actors),
		optional("http", httpShape(capabilities)),
		optional("run", object("how `wasmactors run` treats the bundle",
			optional("main", pattern(none, "the actor whose end ends the run", nameWhat, nameRule)),
		)),
	)
	if len(kinds) > 0 {
		root.Fields = append(root.Fields, optional("services", object("settings of the services that actors are granted", settingsFields(kinds)...)))
	}
	return root, actor
}

var moduleShape = object("a module: either go or wasm",
	optional("go", text(service.ReachRead, "folder of a Go main package to build, relative to the manifest")),
	optional("wasm", text(service.ReachRead, "a .wasm file, relative to the manifest")),
	optional("tags", list("build tags", pattern(none, "a tag", "a build tag", `^[A-Za-z_][A-Za-z0-9_.]{0,63}$`))),
	optional("flags", object("further flags of the compilers; only some are accepted",
		optional("go", list("of standard Go: -gcflags=-l -N -B, -ldflags=-s, -ldflags=-X pkg.name=value", text(none, "a flag"))),
		optional("tinygo", list("of TinyGo: -opt, -gc, -panic, -stack-size, -ldflags=-X pkg.name=value", text(none, "a flag"))),
	)),
	optional("compiler", enum("which compiler builds it: auto takes TinyGo if there is one", "auto", "go", "tinygo")),
	optional("freeze", boolean("start instances from a frozen image; false runs the initialisation for each")),
	optional("env", mapping("environment variables that the guest sees", "a variable's name", `^[A-Za-z_][A-Za-z0-9_]*$`, text(none, "its value"))),
	optional("dirs", list("directories that the guest may use", object("a directory",
		required("host", grantedAs(text(service.ReachRead, "path on this machine, relative to the manifest"), "guest", "mode", "rw")),
		required("guest", pattern(none, "path that the guest sees", "an absolute path", `^/`)),
		optional("mode", enum("ro: read only (default); rw: read and write", "ro", "rw")),
		optional("bytes", sizeIn("mode: rw: what all files in it may take together; default: 1GiB", 1, 1<<50)),
		optional("files", count("mode: rw: how many files and folders may be in it; default: 10k", 1<<30)),
	))),
	optional("limits", moduleLimitsShape),
	optional(upgradeKey, upgradeShape),
)

// Bounds of limits. Some are those of the formats or of the engine; beyond the others a value
// can only be a mistake.
const (
	leastMemory, mostMemory = 64 << 10, 4 << 30
	leastCompile            = 32 << 20
	mostCompile             = 64 << 30
	leastStack, mostStack   = 1 << 10, 64 << 20
	mostTable               = 10_000_000
	mostGlobals             = 1_000_000
	mostEntries             = 1_000_000
	mostElements            = 100_000_000
	mostTables              = 100_000
	mostModule              = 256 << 20
	leastOutbox, mostOutbox = 1 << 10, 1 << 30
	leastMessage            = 1 << 10
	mostMessage             = 1 << 30
	mostInstances           = 10_000_000
	leastHeld               = 16 << 10
	leastSystem             = 64 << 10
)

var moduleLimitsShape = object("what a module and its instances may use",
	optional("size", sizeIn("bytes of the module itself; default 64MiB", 1, mostModule)),
	optional("data", sizeIn("bytes of its data segments; default 64MiB", 1, mostModule)),
	optional("globals", count("globals; default 10000", mostGlobals)),
	optional("types", count("types of functions; default 10000", mostEntries)),
	optional("functions", count("functions, imported ones included; default 200k", mostEntries)),
	optional("segments", count("segments of data and of elements; default 1M", mostElements)),
	optional("elements", count("elements in its segments; default 262144", mostElements)),
	optional("tables", count("tables; default 100", mostTables)),
	optional("table-entries", count("entries of all tables together, those that they grow by included; default: 131072, or table if that is more", mostElements)),
	optional("compile-steps", count("steps of the compiler, of about a nanosecond, as estimated, beyond 1000 for each byte of the module; default 700M", 0)),
	optional("compile-bytes", sizeIn("bytes of memory of the compiler, as estimated, beyond 200 for each byte of the module; default 128MiB", 1<<20, 1<<40)),
	optional("memory", sizeIn("bytes of linear memory of an instance, in pages of 64 KiB; default: the largest of its actors' limits", leastMemory, mostMemory)),
	optional("table", count("entries of a table; default: the largest of its actors' limits", mostTable)),
	optional("stack", sizeIn("bytes that nested calls may take; default: the largest of its actors' limits", leastStack, mostStack)),
	optional("instances", count("instances alive, idle ones included; default: as many as the engine allows", mostInstances)),
	optional("init-fuel", count("units of fuel of the initialisation; default 10G", 0)),
	optional("init-deadline", duration("wall-clock time of the initialisation; default 30s")),
	optional("compile-time", duration("processor time of compiling it; default 1s and 10s a MiB")),
	optional("compile-memory", sizeIn("bytes that compiling it may take; default 128MiB, 160 times its size and twice its memory", leastCompile, mostCompile)),
)

var limitsShape = object("what one actor may use",
	optional("memory", sizeIn("bytes of linear memory, in pages of 64 KiB", leastMemory, mostMemory)),
	optional("fuel", count("units of fuel a turn; one is about an instruction", 0)),
	optional("deadline", duration("wall-clock time a turn; 0: none")),
	optional("stack", sizeIn("bytes that nested calls may take; decided per module, the largest of its actors counts", leastStack, mostStack)),
	optional("table", count("entries of a table; decided per module, the largest of its actors counts", mostTable)),
	optional("outbox", sizeIn("bytes of commands a turn", leastOutbox, mostOutbox)),
	optional("message", sizeIn("bytes of a message that it is sent, with its headers: default 1MiB for a guest, at most its memory; its inbox, if it does not take larger ones", leastMessage, mostMessage)),
	optional("mailbox", count("messages that may wait", 1<<24)),
	optional("mailbox-bytes", size("bytes of messages that may wait")),
	optional("children", count("children", 10_000_000)),
	optional("timers", count("pending timers", 1_000_000)),
	optional("watches", count("watched actors", 1_000_000)),
	optional("asks", count("pending asks", 1_000_000)),
	optional("stash", count("stashed messages", 1_000_000)),
	optional("held", sizeIn("bytes that the host holds for it besides its memory: messages, stash, timers, asks, watches, snapshots; default 64MiB", leastHeld, 1<<50)),
	optional("durable", sizeIn("bytes of a durable actor's state in the store, or of its events; beyond it the actor fails; default: what memory and held allow, or any number", leastDurable, 1<<50)),
	optional("tree", object("what the actor and all below it may use together; not inherited",
		optional("actors", count("actors, itself included; default: any number", 1<<30)),
		optional("memory", sizeIn("bytes that the host holds for them; default: for actors at the top half of the system's, for others no bound", leastSystem, 1<<50)),
	)),
)

var supervisionShape = object("how an actor treats its children when they fail",
	optional("strategy", enum("which children a decision is carried out for besides the one that failed", supervision.Kinds()...)),
	optional("max-restarts", integer("restarts of a child within the window; one more failure stops it; -1: unlimited", -1, 10_000)),
	optional("within", duration("length of the window; 0: the child's life")),
	optional("window", enum("tumbling as Akka's, sliding as OTP's", "tumbling", "sliding")),
	optional("shared-window", boolean("one window for all children together, as OTP's intensity, instead of one for each")),
	optional("exceeded", enum("the decision when the limit forbids a restart; default: stop, and escalate with a shared window", "stop", "escalate")),
	optional("shutdown", enum("the actor stops when significant children have ended by themselves", supervision.Shutdowns()...)),
	optional("keep-children", boolean("a restarted child keeps its children")),
	optional("backoff", backoffShape),
	optional("decide", list("rules, the first that matches decides", object("a rule: all conditions must hold",
		optional("kind", enum("the kind of failure", failureNames()...)),
		optional("kinds", list("kinds of failure, any of which matches", enum("a kind of failure", failureNames()...))),
		optional("reason", text(none, "a pattern for the reason or the message; * and ? are wild")),
		optional("type", text(none, "a pattern for the type of the actor that failed")),
		required("directive", enum("what is done", directiveNames()...)),
	))),
	optional("otherwise", enum("what is done about failures that no rule covers", directiveNames()...)),
)

var backoffShape = object("delays before restarts",
	optional("curve", enumWith(wordsCurves, "how delays grow", backoff.Curves()...)),
	optional("min", duration("first delay, or the unit of the curve")),
	optional("max", duration("largest delay before jitter")),
	optional("factor", number("exponential: growth", 1, 1000)),
	optional("step", duration("linear: growth")),
	optional("num", integer("zaqar-*: steps from min to max", 1, 1_000_000)),
	optional("delays", list("table: the delays", duration("a delay"))),
	optional("ceiling", integer("slotted: the last slot", 1, 62)),
	optional("stay", boolean("slotted: stay at the ceiling instead of starting again")),
	optional("jitter", enumWith(wordsJitters, "how delays are spread", backoff.Jitters()...)),
	optional("spread", number("additive and two-sided jitter: the fraction", 0, 1)),
	optional("hard-cap", boolean("jitter does not exceed max either")),
	optional("reset", enum("when the count of failures starts again", "after-stable", "never", "manual")),
	optional("reset-after", duration("after-stable: how long the child must have lived; default: its last delay")),
	optional("max-failures", integer("failures since the last reset before giving up; 0: never", 0, 1_000_000)),
	optional("give-up", enum("what giving up means; suspended actors wait for an operator", supervision.GiveUps()...)),
	optional("on", enum("which ends are answered with a delay, the others at once; default: any", "failure", "stop", "any")),
	optional("meanwhile", enum("messages that come during a delay: keep them, drop them, or reply with an error", supervision.Meanwhiles()...)),
	optional("reply", text(none, "meanwhile: reply: the reason in the answer")),
	optional("stash", count("meanwhile: keep: how many; beyond it the oldest becomes a dead letter; default: the mailbox's limit", 1<<24)),
	optional("grace", duration("how long a child must have lived after a delay before it gets what has waited")),
	optional("overtake", boolean("messages that come during the grace do not wait")),
)

var resendShape = object("messages are kept until the actor confirms them, and sent again to its successor when it ends",
	optional("slot", duration("unit of the wait before the next one starts; default: 10ms")),
	optional("ceiling", integer("the last slot; default: 10", 1, 62)),
	optional("stay", boolean("stay at the ceiling instead of starting again; default: true")),
	optional("max", duration("largest wait")),
	optional("keep", count("messages that are kept; beyond it the oldest becomes a dead letter; default: 1000", 1_000_000)),
	optional("attempts", integer("how often the actor may end over one message; default: 10", 1, 1_000_000)),
	optional("max-crashes", integer("ends in a row before giving up; 0: never", 0, 1_000_000)),
	optional("patience", duration("how long one message may hold up the others after a crash; default: 5s")),
)

var (
	lifetimeShape    = enum("which ends are answered with a restart: of failures (transient), also of its own stop (permanent), of none (temporary)", supervision.Lifetimes()...)
	significantShape = boolean("its end counts for the shutdown of its supervisor")
	crashedShape     = pattern(none, "what becomes of a message whose turn fails: drop, dead-letter, or how often it is delivered again", "drop, dead-letter or a number from 1 to 1000", `^(drop|dead-letter|[1-9][0-9]{0,2}|1000)$`)
)

// spawnShape is what a guest may say about a child that it spawns.
var spawnShape = object("options of a spawn",
	optional("lifetime", lifetimeShape),
	optional("significant", significantShape),
	optional("crashed-message", crashedShape),
	optional("supervision", supervisionShape),
	optional("mailbox", mailboxShape),
	optional("dispatcher", dispatcherShape),
	optional("place", placeShape),
)

// capabilitiesWith is what actors may do, with the grants of services.
func capabilitiesWith(kinds []service.Kind) *shape {
	capabilities := object("what it may do; nothing by default",
		optional("send", list("paths that it may send to by path", pattern(none, "a path", pathWhat, pathRule))),
		optional("stop", list("paths of actors that it may stop besides its children", pattern(none, "a path", pathWhat, pathRule))),
		optional("spawn", list("types of its module that it may spawn; * for all; TYPE@ROLE: on nodes of the cluster with the role, * for any", text(none, "a type"))),
		optional("metrics", mapping("metrics of its own, by their names", "a metric's name", "^"+guests.NameRule+"$", metricShape)),
	)
	capabilities.Fields = append(capabilities.Fields, grantFields(kinds)...)
	return capabilities
}

// actorWith is the shape of an actor of the tree.
func actorWith(children, capabilities *shape) *shape {
	shape := object("an actor",
		optional("type", pattern(none, "its type: module/type, or type alone if there is one module; needed unless to is given", "a type such as module/type", typeRule)),
		optional("args", anything("what it is started with; any value, sent as CBOR")),
		optional("limits", limitsShape),
		optional("mailbox", mailboxShape),
		optional("dispatcher", dispatcherShape),
		optional("capabilities", capabilities),
		optional("lifetime", lifetimeShape),
		optional("significant", significantShape),
		optional("crashed-message", crashedShape),
		optional("supervision", supervisionShape),
		optional("resend", resendShape),
		optional("messages", messagesShape),
		optional(durableKey, boolean("true: the actor, and all below it, outlive the process; events: it keeps what has happened to it as events; see the key store").Or(eventsValue)),
		optional(upgradeKey, upgradeShape),
		optional("children", children),
	)
	shape.Fields = append(append(shape.Fields, routingFields()...), optional("keyed", keyedShape), optional("singleton", singletonShape))
	return shape
}

func failureNames() []string {
	var names []string
	for _, k := range abi.FailureKinds() {
		names = append(names, k.String())
	}
	return names
}

func directiveNames() []string {
	var names []string
	for _, d := range supervision.Directives() {
		names = append(names, d.String())
	}
	return names
}
