"use strict";
// One WebSocket for each visit to a room. What comes is lines of text; "* " begins one of the room's own. A connection
// that is lost is made again, with pauses that grow; the room then tells what was said last.
const el = id => document.getElementById(id);
const firstPause = 500, longestPause = 15000; // ms
let visit = null;

el("enter").addEventListener("submit", event => {
  event.preventDefault();
  if (visit) leave(visit);
  const url = new URL("rooms/" + encodeURIComponent(el("room").value), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.searchParams.set("name", el("name").value);
  visit = { url, room: el("room").value, been: false, pause: firstPause, timer: 0, socket: null };
  connect(visit);
});

function connect(v) {
  const s = v.socket = new WebSocket(v.url);
  status((v.been ? "coming back to " : "entering ") + v.room);
  s.onopen = () => {
    if (v !== visit) return;
    v.been = true;
    v.pause = firstPause;
    el("lines").replaceChildren();
    el("say").hidden = false;
    el("text").focus();
    status("in " + v.room);
  };
  s.onmessage = m => { if (v === visit) line(m.data); };
  s.onclose = e => {
    if (v !== visit) return;
    el("say").hidden = true;
    // 1000 is a goodbye. Browsers do not tell why somebody was not let in, so only who has been there comes again.
    if (!v.been || e.code === 1000) {
      visit = null;
      status("not connected" + (e.reason ? ": " + e.reason : v.been ? "" : "; a name may be taken"));
      return;
    }
    const pause = v.pause * (0.5 + Math.random() / 2);
    v.pause = Math.min(2 * v.pause, longestPause);
    v.timer = setTimeout(() => connect(v), pause);
    status("the connection is lost; trying again");
  };
}

function leave(v) {
  visit = null;
  clearTimeout(v.timer);
  v.socket.close(1000);
}

el("say").addEventListener("submit", event => {
  event.preventDefault();
  if (visit && el("text").value) visit.socket.send(el("text").value);
  el("text").value = "";
});

function line(text) {
  const li = document.createElement("li");
  li.textContent = text;
  if (text.startsWith("* ")) li.className = "notice";
  el("lines").append(li);
  while (el("lines").children.length > 500) el("lines").firstChild.remove();
  li.scrollIntoView({ block: "nearest" });
}

function status(text) { el("status").textContent = text; }
