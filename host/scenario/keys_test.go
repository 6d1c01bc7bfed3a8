package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every key does what it says: with it a scenario holds, and where the key alone is another
// the scenario fails, for the reason that the key is about. Of keys without an expectation of their own
// what follows tells.
var keys = []struct {
	key       string // verb.key, or the key of a scenario
	good, bad string // steps; of settings whole scenarios without the name
	says      string // the failure of bad
}{
	{"send.send", "- {send: asker, message: [!ref me, hi, 1], from: me}\n- {expect: me, message: [hi, 1]}",
		"- {send: loner, message: [!ref me, hi, 1], from: me}\n- {expect: me, message: [hi, 1]}", "it has 3 elements, not 2"},
	{"send.message", "- {send: echo, message: {a: [1, x]}, from: me}\n- {expect: me, message: {a: [1, x]}}",
		"- {send: echo, message: {a: [1, y]}, from: me}\n- {expect: me, message: {a: [1, x]}}", `it.a[1] is "y", not "x"`},
	{"send.from", "- {send: echo, message: 5, from: me}\n- {expect: me, message: 5}\n- {send: loner, message: 5, from: you}",
		"- {send: echo, message: 5, from: you}\n- {send: asker, message: [!ref me, x, 1]}\n- {expect: me, message: 5}", `it is ["x", 1], not 5`},
	{"send.headers", "- {send: standin, message: 5, headers: {a: b}}\n- {expect: standin, headers: {a: b}}",
		"- {send: standin, message: 5, headers: {a: c}}\n- {expect: standin, headers: {a: b}}", `its header a is "c", not "b"`},
	{"send.times", "- {send: echo, message: 5, from: me, times: 2}\n- {expect: me}\n- {expect: me}",
		"- {send: echo, message: 5, from: me, times: 1}\n- {expect: me}\n- {expect: me}", "me got no message within 3s"},

	{"ask.ask", "- {ask: echo, message: 5, answer: 5}", "- {ask: standin, message: 5, answer: 5}", "no answer from /user/standin within 3s"},
	{"ask.message", "- {ask: echo, message: 5, answer: 5}", "- {ask: echo, message: 6, answer: 5}", "it is 6, not 5"},
	{"ask.headers", "- {send: standin, message: 1}\n- {ask: standin, message: 5, headers: {a: b}, error: '*no answer*'}\n- {expect: standin}\n- {expect: standin, headers: {a: b}}",
		"- {send: standin, message: 1}\n- {ask: standin, message: 5, error: '*no answer*'}\n- {expect: standin}\n- {expect: standin, headers: {a: b}}", "it lacks the header a"},
	{"ask.answer", "- {ask: echo, message: {a: 1}, answer: {a: 1}}", "- {ask: echo, message: {a: 1, b: 2}, answer: {a: 1}}", `it has the key "b", which was not expected`},
	{"ask.match", "- {ask: echo, message: {a: 1, b: 2}, match: {a: !min 1}}", "- {ask: echo, message: {a: 0}, match: {a: !min 1}}", "it.a is 0, which is not !min 1"},
	{"ask.error", "- {ask: echo, message: 0, error: '*trap: unreachable'}", "- {ask: echo, message: 0, error: '*fuel*'}", "it is another error"},
	{"ask.within", "- {ask: standin, message: 5, within: 10ms, error: '*within 10ms'}",
		"- {ask: standin, message: 5, within: 20ms, error: '*within 10ms'}", "it is another error"},

	{"expect.expect", "- {send: echo, message: 5, from: me}\n- {send: echo, message: 6, from: you}\n- {expect: you, message: 6}",
		"- {send: echo, message: 5, from: me}\n- {send: echo, message: 6, from: you}\n- {expect: me, message: 6}", "it is 5, not 6"},
	{"expect.message", "- {send: echo, message: 5, from: me}\n- {expect: me, message: 5}", "- {send: echo, message: 5, from: me}\n- {expect: me, message: 5.5}", "it is 5, not 5.5"},
	{"expect.match", "- {send: echo, message: hello, from: me}\n- {expect: me, match: !re ^h.l+o$}", "- {send: echo, message: hello, from: me}\n- {expect: me, match: !re ^x}", `it is "hello", which is not !re ^x`},
	{"expect.headers", "- {send: standin, message: 5, headers: {a: b, c: d}}\n- {expect: standin, headers: {c: d}}", "- {send: standin, message: 5, headers: {a: b}}\n- {expect: standin, headers: {c: d}}", "it lacks the header c"},
	{"expect.from", "- {send: echo, message: 5, from: me}\n- {expect: me, from: ec*}", "- {send: echo, message: 5, from: me}\n- {expect: me, from: loner}", "it is from another sender"},
	{"expect.error", "- {send: asker, message: 5, from: me}\n- {expect: me, error: '*type*'}", "- {send: asker, message: 5, from: me}\n- {expect: me, error: '*arity*'}", "it is another error"},
	{"expect.within", "- {delay: echo, by: 50ms}\n- {send: echo, message: 5, from: me}\n- {expect: me, within: 50ms}",
		"- {delay: echo, by: 50ms}\n- {send: echo, message: 5, from: me}\n- {expect: me, within: 49ms}", "me got no message within 49ms"},

	{"expect-none.expect-none", "- {send: echo, message: 5, from: me}\n- {send: standin, message: 1, from: you}\n- {expect-none: you, for: 1s}",
		"- {send: echo, message: 5, from: me}\n- {expect-none: me, for: 1s}", "me got a message, 0s after the beginning"},
	{"expect-none.for", "- {delay: echo, by: 50ms}\n- {send: echo, message: 5, from: me}\n- {expect-none: me, for: 49ms}",
		"- {delay: echo, by: 50ms}\n- {send: echo, message: 5, from: me}\n- {expect-none: me, for: 50ms}", "me got a message, 50ms after the beginning"},

	{"reply.reply", "- {send: asker, message: [!ref standin, op, 1]}\n- {expect: standin, message: [op, 1]}\n- {send: asker, message: [!ref standin, op, 2], from: me}",
		"- {send: standin, message: 1}\n- {expect: standin}\n- {reply: standin, message: 1}", "the stand-in standin has no open question"},
	{"reply.message", "", "", ""}, // TestStandIns
	{"reply.error", "", "", ""},   // TestStandIns

	{"advance.advance", "- {delay: echo, by: 1s}\n- {send: echo, message: 5, from: me}\n- {advance: 1s}\n- {expect: me, within: 0}",
		"- {delay: echo, by: 1s}\n- {send: echo, message: 5, from: me}\n- {advance: 999ms}\n- {expect: me, within: 0}", "me got no message within 0s"},

	{"http.http", "- {http: GET /users/ann, answer: {id: ann, q: ''}}", "- {http: GET /users/bob, answer: {id: ann, q: ''}}", `its body.id is "bob", not "ann"`},
	{"http.headers", "- {http: GET /show/x, headers: {x-a: b}, match: !re 'x-a: b'}", "- {http: GET /show/x, match: !re 'x-a: b'}", "which is not !re"},
	{"http.body", "- {http: POST /echo, body: hello, answer: hello}", "- {http: POST /echo, body: bye, answer: hello}", `its body is "bye", not "hello"`},
	{"http.json", "- {http: POST /echo, json: {a: [1]}, answer: {a: [1]}, answer-headers: {content-type: application/json}}", "- {http: POST /echo, json: {a: [2]}, answer: {a: [1]}}", "its body.a[0] is 2, not 1"},
	{"http.status", "- {http: GET /nowhere, status: 404}", "- {http: GET /nowhere}", "it has another status"},
	{"http.answer", "- {http: GET /hello, answer: hello}", "- {http: GET /hello, answer: bye}", `its body is "hello", not "bye"`},
	{"http.match", "- {http: 'GET /users/ann?q=5', match: {q: '5'}}", "- {http: 'GET /users/ann?q=5', match: {q: '6'}}", `its body.q is "5", not "6"`},
	{"http.answer-headers", "- {http: GET /later, answer-headers: {x-later: 'yes'}}", "- {http: GET /later, answer-headers: {x-later: 'no'}}", `its header x-later is "yes", not "no"`},
	{"http.within", "- {http: GET /later, within: 10ms, answer: at last}", "- {http: GET /later, within: 9ms}", "GET /later was not answered within 9ms"},

	{"websocket.websocket", "- {websocket: ann, open: /live}\n- {websocket: bob, open: /live}\n- {websocket: ann, say: hello, answer: hello}",
		"- {websocket: ann, open: /live}\n- {websocket: bob, open: /live}\n- {websocket: ann, say: hello}\n- {websocket: bob, answer: hello}", "bob heard nothing within 3s"},
	{"websocket.open", "- {websocket: ann, open: /live, say: hello, answer: hello}", "- {websocket: ann, open: /hello}", "it has another status"},
	{"websocket.headers", "- {websocket: ann, open: /live, headers: {origin: 'http://localhost'}}", "- {websocket: ann, open: /live, headers: {origin: 'http://evil.example'}}", "it has another status"},
	{"websocket.status", "- {websocket: ann, open: '/live?refuse=1', status: 403}", "- {websocket: ann, open: /live, status: 403}", "it has another status"},
	{"websocket.say", "- {websocket: ann, open: /live, say: {a: 1}, answer: {a: 1}}\n- {websocket: ann, say: !bytes aGk=, answer: !bytes aGk=}", "- {websocket: ann, open: /live, say: {a: 2}, answer: {a: 1}}", "it.a is 2, not 1"},
	{"websocket.answer", "- {websocket: ann, open: /live, say: hello, answer: hello}", "- {websocket: ann, open: /live, say: hello, answer: bye}", `it is "hello", not "bye"`},
	{"websocket.match", "- {websocket: ann, open: /live, say: hello, match: !glob h*}", "- {websocket: ann, open: /live, say: hello, match: !glob x*}", `it is "hello", which is not !glob x*`},
	{"websocket.close", "- {websocket: ann, open: /live}\n- {websocket: bob, open: /live, close: true}\n- {websocket: ann, say: all here, answer: here}\n- {websocket: bob, closed: 1000}",
		"- {websocket: bob, open: /live}\n- {websocket: bob, closed: 1000}", "bob was not closed within 3s"},
	{"websocket.closed", "- {websocket: ann, open: /live, say: close 4001, closed: 4001}", "- {websocket: ann, open: /live, say: close 4001, closed: 4002}", "ann was closed otherwise"},
	{"websocket.within", "- {websocket: ann, open: /live}\n- {delay: live, by: 50ms}\n- {websocket: ann, say: hello, answer: hello, within: 50ms}",
		"- {websocket: ann, open: /live}\n- {delay: live, by: 50ms}\n- {websocket: ann, say: hello, answer: hello, within: 49ms}", "ann heard nothing within 49ms"},

	{"crash.crash", "- {crash: echo}\n- {expect-state: echo, crashes: 1}", "- {crash: loner}\n- {expect-state: echo, crashes: 1}", "crashes is 0, not 1"},
	{"crash.on-message", "- {crash: echo, on-message: 2}\n- {ask: echo, message: 5, answer: 5}\n- {expect-state: echo, crashes: 0}\n- {send: echo, message: 6}\n- {expect-state: echo, crashes: 1}",
		"- {crash: echo, on-message: 1}\n- {ask: echo, message: 5, answer: 5}", "there is no answer but an error"},
	{"crash.kind", "- {crash: echo, kind: fuel}\n- {expect-restart: echo, cause: 'fuel: *'}", "- {crash: echo, kind: trap}\n- {expect-restart: echo, cause: 'fuel: *'}", "the failure was another"},
	{"crash.reason", "- {crash: echo, reason: lightning}\n- {expect-restart: echo, cause: '*lightning'}", "- {crash: echo}\n- {expect-restart: echo, cause: '*lightning'}", "the failure was another"},
	{"stop.stop", "- {stop: echo}\n- {expect-state: echo, alive: false}", "- {stop: loner}\n- {expect-state: echo, alive: false}", "/user/echo is there"},
	{"restart.restart", "- {restart: echo}\n- {expect-state: echo, incarnation: 1}", "- {restart: loner}\n- {expect-state: echo, incarnation: 1}", "incarnation is 0, not 1"},
	{"pause.pause", "- {pause: echo}\n- {send: echo, message: 5}\n- {expect-state: echo, state: paused, mailbox: 1}", "- {pause: loner}\n- {expect-state: echo, state: paused}", "state is running, not paused"},
	{"unpause.unpause", "- {pause: echo}\n- {send: echo, message: 5, from: me}\n- {unpause: echo}\n- {expect: me, message: 5}", "- {pause: echo}\n- {send: echo, message: 5, from: me}\n- {unpause: loner}\n- {expect: me, message: 5}", "me got no message"},

	{"expect-restart.expect-restart", "- {crash: echo}\n- {expect-restart: echo}", "- {crash: loner}\n- {expect-restart: echo}", "/user/echo was not restarted within 3s"},
	{"expect-restart.after", "- {crash: echo}\n- {expect-restart: echo, after: 100ms, tolerance: 20ms}", "- {crash: echo}\n- {expect-restart: echo, after: 150ms, tolerance: 20ms}", "/user/echo was restarted at another time"},
	{"expect-restart.tolerance", "- {crash: echo}\n- {expect-restart: echo, after: 100ms, tolerance: 20%}", "- {crash: echo}\n- {expect-restart: echo, after: 100ms}", "/user/echo was restarted at another time"},
	{"expect-restart.cause", "- {send: echo, message: 0}\n- {expect-restart: echo, cause: 'trap: unreach*'}", "- {send: echo, message: 0}\n- {expect-restart: echo, cause: 'fuel*'}", "the failure was another"},
	{"expect-restart.within", "- {crash: echo}\n- {expect-restart: echo, within: 130ms}", "- {crash: echo}\n- {expect-restart: echo, within: 70ms}", "/user/echo was not restarted within 70ms"},

	{"expect-stopped.expect-stopped", "- {stop: echo}\n- {expect-stopped: echo}", "- {stop: loner}\n- {expect-stopped: echo}", "/user/echo has not stopped within 3s"},
	{"expect-stopped.reason", "- {crash: fragile, reason: lightning}\n- {expect-stopped: fragile, reason: '*lightning*'}", "- {stop: fragile}\n- {expect-stopped: fragile, reason: '*lightning*'}", "/user/fragile has stopped for another reason"},
	{"expect-stopped.within", "- {delay: fragile, by: 50ms}\n- {send: fragile, message: 0}\n- {expect-stopped: fragile, within: 50ms}",
		"- {delay: fragile, by: 50ms}\n- {send: fragile, message: 0}\n- {expect-stopped: fragile, within: 49ms}", "/user/fragile has not stopped within 49ms"},

	{"expect-event.expect-event", "- {crash: echo}\n- {expect-event: restarted}", "- {crash: echo}\n- {expect-event: paused}", "there was no such event within 3s"},
	{"expect-event.actor", "- {crash: echo}\n- {expect-event: failed, actor: echo}", "- {crash: echo}\n- {expect-event: failed, actor: loner}", "there was no such event within 3s"},
	{"expect-event.text", "- {send: echo, message: 0}\n- {expect-event: failed, text: '*unreachable'}", "- {send: echo, message: 0}\n- {expect-event: failed, text: '*fuel'}", "there was no such event within 3s"},
	{"expect-event.within", "- {crash: echo}\n- {expect-event: restarted, within: 130ms}", "- {crash: echo}\n- {expect-event: restarted, within: 70ms}", "there was no such event within 70ms"},

	{"expect-request.expect-request", surf(`GET`) + "- {expect-request: 'http://shop.example/*'}", surf(`GET`) + "- {expect-request: 'http://other.example/*'}", "there was no such request within 3s"},
	{"expect-request.method", surf(`POST`) + "- {expect-request: '*', method: POST}", surf(`POST`) + "- {expect-request: '*', method: GET}", "there was no such request within 3s"},
	{"expect-request.match", surf(`POST`) + "- {expect-request: '*', match: !type text}", surf(`POST`) + "- {expect-request: '*', match: {a: 1}}", "its body is text, not a map"},
	{"expect-request.headers", surf(`GET`) + "- {expect-request: '*', headers: {user-agent: wasmactors}}", surf(`GET`) + "- {expect-request: '*', headers: {user-agent: other}}", `its header user-agent is "wasmactors", not "other"`},
	{"expect-request.within", "- {http: [{url: '*'}]}\n- {delay: surfer, by: 50ms}\n- {send: surfer, message: [get, 'http://shop.example/', 0]}\n- {expect-request: '*', within: 50ms}",
		"- {http: [{url: '*'}]}\n- {delay: surfer, by: 50ms}\n- {send: surfer, message: [get, 'http://shop.example/', 0]}\n- {expect-request: '*', within: 49ms}", "there was no such request within 49ms"},

	{"expect-state.expect-state", "- {crash: echo}\n- {expect-state: echo, crashes: 1}", "- {crash: echo}\n- {expect-state: loner, crashes: 1}", "crashes is 0, not 1"},
	{"expect-state.alive", "- {expect-state: echo, alive: true}", "- {expect-state: echo, alive: false}", "/user/echo is there"},
	{"expect-state.state", "- {crash: echo}\n- {expect-state: echo, state: delayed}", "- {expect-state: echo, state: delayed}", "state is running, not delayed"},
	{"expect-state.restarts", "- {crash: echo}\n- {advance: 1s}\n- {expect-state: echo, restarts: 1}", "- {crash: echo}\n- {expect-state: echo, restarts: 1}", "restarts is 0, not 1"},
	{"expect-state.crashes", "- {crash: echo}\n- {expect-state: echo, crashes: 1}", "- {expect-state: echo, crashes: 1}", "crashes is 0, not 1"},
	{"expect-state.incarnation", "- {restart: echo}\n- {expect-state: echo, incarnation: 1}", "- {expect-state: echo, incarnation: 1}", "incarnation is 0, not 1"},
	{"expect-state.mailbox", "- {pause: echo}\n- {send: echo, message: 1, times: 2}\n- {expect-state: echo, mailbox: 2}", "- {expect-state: echo, mailbox: 2}", "mailbox is 0, not 2"},
	{"expect-state.children", "- {expect-state: parent, children: 1}", "- {expect-state: echo, children: 1}", "children is 0, not 1"},

	{"drop.drop", "- {drop: echo}\n- {send: echo, message: 1, from: me}\n- {expect-none: me, for: 1s}", "- {drop: loner}\n- {send: echo, message: 1, from: me}\n- {expect-none: me, for: 1s}", "me got a message"},
	{"drop.messages", "- {drop: echo, messages: 2}\n- {send: echo, message: 1, from: me, times: 3}\n- {expect: me}\n- {expect-none: me, for: 0}",
		"- {drop: echo}\n- {send: echo, message: 1, from: me, times: 3}\n- {expect: me}\n- {expect-none: me, for: 0}", "me got a message"},
	{"delay.delay", "- {delay: echo, by: 1s}\n- {send: echo, message: 1, from: me}\n- {expect-none: me, for: 999ms}\n- {expect: me}", "- {delay: loner, by: 1s}\n- {send: echo, message: 1, from: me}\n- {expect-none: me, for: 999ms}", "me got a message"},
	{"delay.by", "- {delay: echo, by: 1s}\n- {send: echo, message: 1, from: me}\n- {expect-none: me, for: 999ms}", "- {delay: echo, by: 500ms}\n- {send: echo, message: 1, from: me}\n- {expect-none: me, for: 999ms}", "500ms after the beginning"},
	{"delay.messages", "- {delay: echo, by: 1s, messages: 2}\n- {send: echo, message: 1, from: me, times: 2}\n- {expect-none: me, for: 999ms}", "- {delay: echo, by: 1s}\n- {send: echo, message: 1, from: me, times: 2}\n- {expect-none: me, for: 999ms}", "me got a message"},
	{"reorder.reorder", "- {reorder: echo}\n- {send: echo, message: 1, from: me}\n- {send: echo, message: 2, from: me}\n- {send: echo, message: 3, from: me}\n- {expect: me, message: 2}\n- {expect: me, message: 1}\n- {expect: me, message: 3}",
		"- {reorder: loner}\n- {send: echo, message: 1, from: me}\n- {send: echo, message: 2, from: me}\n- {expect: me, message: 2}", "it is 1, not 2"},
	{"reorder.messages", "- {reorder: echo, messages: 2}\n- {send: echo, message: 1, from: me}\n- {send: echo, message: 2, from: me}\n- {send: echo, message: 3, from: me}\n- {expect: me, message: 3}\n- {expect: me, message: 1}\n- {expect: me, message: 2}",
		"- {reorder: echo, messages: 1}\n- {send: echo, message: 1, from: me}\n- {send: echo, message: 2, from: me}\n- {send: echo, message: 3, from: me}\n- {expect: me, message: 3}", "it is 2, not 3"},
	{"duplicate.duplicate", "- {duplicate: echo}\n- {send: echo, message: {a: 1}, from: me}\n- {expect: me, message: {a: 1}}\n- {expect: me, message: {a: 1}}\n- {expect-none: me, for: 0}",
		"- {duplicate: loner}\n- {send: echo, message: {a: 1}, from: me}\n- {expect: me}\n- {expect: me}", "me got no message"},
	{"duplicate.messages", "- {duplicate: echo, messages: 2}\n- {send: echo, message: 1, from: me, times: 2}\n- {expect: me}\n- {expect: me}\n- {expect: me}\n- {expect: me}",
		"- {duplicate: echo}\n- {send: echo, message: 1, from: me, times: 2}\n- {expect: me}\n- {expect: me}\n- {expect: me}\n- {expect: me}", "me got no message"},

	{"http.http", surf(`GET`), "- {ask: surfer, message: [get, 'http://shop.example/', 0]}", "has no answer to that"},
	{"fake.url", faked(`{url: "http://shop.*", status: 201}, {url: "*", status: 202}`, 201, ""), faked(`{url: "http://other.*", status: 201}, {url: "*", status: 202}`, 201, ""), "it[0] is 202, not 201"},
	{"fake.method", faked(`{url: "*", method: GET, status: 201}, {url: "*"}`, 201, ""), faked(`{url: "*", method: PUT, status: 201}, {url: "*"}`, 201, ""), "it[0] is 200, not 201"},
	{"fake.status", faked(`{url: "*", status: 404}`, 404, ""), faked(`{url: "*"}`, 404, ""), "it[0] is 200, not 404"},
	{"fake.headers", faked(`{url: "*", headers: {X-Answer: yes!}}`, 200, "yes!"), faked(`{url: "*"}`, 200, "yes!"), `it[1] is "", not "yes!"`},
	{"fake.body", "- {http: [{url: '*', body: hello}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], answer: [200, '', !bytes aGVsbG8=]}",
		"- {http: [{url: '*', body: bye}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], answer: [200, '', !bytes aGVsbG8=]}", "it[2] is !bytes Ynll"},
	{"fake.json", "- {http: [{url: '*', json: {a: 1}}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], answer: [200, '', !bytes eyJhIjoxfQ==]}",
		"- {http: [{url: '*', json: {a: 2}}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], answer: [200, '', !bytes eyJhIjoxfQ==]}", "it[2] is !bytes"},
	{"fake.error", "- {http: [{url: '*', error: the cable is cut}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], error: 'failed: the cable is cut'}",
		"- {http: [{url: '*'}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], error: 'failed: the cable is cut'}", "there is an answer and no error"},
	{"fake.delay", "- {http: [{url: '*', delay: 2s}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], within: 2s}",
		"- {http: [{url: '*', delay: 2001ms}]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], within: 2s}", "no answer from /user/surfer within 2s"},
	{"fake.times", faked(`{url: "*", times: 1, status: 201}, {url: "*", status: 202}`, 201, "") + "\n- {ask: surfer, message: [get, 'http://shop.example/', 0], match: [202, !any , !any ]}",
		faked(`{url: "*", times: 2, status: 201}, {url: "*", status: 202}`, 201, "") + "\n- {ask: surfer, message: [get, 'http://shop.example/', 0], match: [202, !any , !any ]}", "it[0] is 201, not 202"},

	{"scenario.seed", "", "", ""}, // TestSeeds
	{"scenario.start", "start: 2027-03-01T10:00:00Z\nsteps:\n- {ask: runner, message: every tick 60, answer: '2027-03-01T10:01:00Z'}",
		"start: 2027-03-01T11:00:00Z\nsteps:\n- {ask: runner, message: every tick 60, answer: '2027-03-01T10:01:00Z'}", `not "2027-03-01T10:01:00Z"`},
	{"scenario.config", "config: {color: blue}\nsteps:\n- {ask: setter, message: string color, answer: blue}", "steps:\n- {ask: setter, message: string color, answer: blue}", `it is "red", not "blue"`},
	{"scenario.secrets", "secrets: {token: abcdefgh}\nsteps:\n- {ask: setter, message: secret token none, answer: done 8}", "steps:\n- {ask: setter, message: secret token none, match: !any }", "there is no answer but an error"},
	{"scenario.env", "env: {TOWN: Berlin}\nsteps:\n- {ask: setter, message: string town, answer: Berlin}", "steps:\n- {ask: setter, message: string town, answer: Berlin}", "there is no answer but an error"},
	{"scenario.http", "http: [{url: '*', status: 204}]\nsteps:\n- {ask: surfer, message: [get, 'http://shop.example/', 0], match: [204, !any , !any ]}", "http: [{url: '*'}]\nsteps:\n- {ask: surfer, message: [get, 'http://shop.example/', 0], match: [204, !any , !any ]}", "it[0] is 200, not 204"},
	{"scenario.stand-ins", "stand-ins: [echo]\nsteps:\n- {send: echo, message: 5, from: me}\n- {expect: echo, message: 5}\n- {expect-none: me, for: 0}", "stand-ins: [loner]\nsteps:\n- {send: echo, message: 5, from: me}\n- {expect-none: me, for: 0}", "me got a message"},
	{"scenario.skip", "skip: not yet\nsteps:\n- {ask: echo, message: 5, answer: 6}", "steps:\n- {ask: echo, message: 5, answer: 6}", "it is 5, not 6"},
	{"scenario.steps", "steps:\n- {ask: echo, message: 5, answer: 5}", "steps:\n- {ask: echo, message: 5, answer: 6}", "it is 5, not 6"},
	{"scenario.invariants", "", "", ""}, {"scenario.simulation", "", "", ""}, // TestSimulatedKeys
	{"scenario.name", "", "", ""},  // TestReport
	{"file.defaults", "", "", ""},  // TestDefaults
	{"file.scenarios", "", "", ""}, // all others
}

// surf asks for something.
func surf(method string) string {
	return fmt.Sprintf("- {http: [{url: '*'}]}\n- {ask: surfer, message: [%s, 'http://shop.example/', 3]}\n", strings.ToLower(method))
}

// faked answers one request, which must have a status and a header.
func faked(list string, status int, header string) string {
	return fmt.Sprintf("- {http: [%s]}\n- {ask: surfer, message: [get, 'http://shop.example/', 0], match: [%d, %q, !any ]}", list, status, header)
}

// scenarioOf reads a scenario of steps, or of settings and steps.
func scenarioOf(t testing.TB, text string) *Scenario {
	t.Helper()
	if !strings.Contains(text, "steps:") {
		text = "stand-ins: [standin]\nsteps:\n" + text
	}
	f, err := Parse("keys_test.yaml", []byte("scenarios:\n- name: it\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f.Scenarios[0]
}

func TestEveryKeyTakesEffect(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	var named []string
	for _, k := range keys {
		named = append(named, k.key)
		if k.good == "" {
			continue
		}
		t.Run(k.key, func(t *testing.T) {
			good, bad := scenarioOf(t, k.good), scenarioOf(t, k.bad)
			for _, s := range []*Scenario{good, bad} {
				if err := (&File{"keys_test.yaml", []*Scenario{s}}).Fits(b.Manifest); err != nil && !strings.Contains(err.Error(), "no step sends from") {
					t.Fatal(err)
				}
			}
			if r := st.Run(t.Context(), b, good, Options{}); r.Outcome == Failed {
				holds(t, r)
			}
			r := st.Run(t.Context(), b, bad, Options{})
			if r.Failure == nil || !strings.Contains(r.Failure.What, k.says) {
				t.Errorf("it fails with %+v, not with %q", r.Failure, k.says)
			}
			if r.Took > 10*time.Second {
				t.Errorf("it took %v", r.Took)
			}
		})
	}
	for _, k := range nodeKeys { // TestEveryKeyOfNodes
		named = append(named, k.key)
	}
	for _, name := range declared() {
		if !slices.Contains(named, name) {
			t.Errorf("the key %s is declared, and no test shows that it takes effect", name)
		}
	}
}

// declared are all keys, as TestEveryKeyTakesEffect calls them.
func declared() (names []string) {
	for _, v := range verbs {
		names = append(names, v.name+"."+v.name)
		for _, f := range v.keys {
			names = append(names, v.name+"."+f.Name)
		}
	}
	for _, f := range fakeShape.Fields {
		names = append(names, "fake."+f.Name)
	}
	for _, f := range fileShape.Fields {
		names = append(names, "file."+f.Name)
		if f.Name == "scenarios" {
			for _, g := range f.Shape.Of.Fields {
				names = append(names, "scenario."+g.Name)
			}
		}
	}
	return names
}
