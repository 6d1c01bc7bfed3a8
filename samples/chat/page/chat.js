"use strict";
// One WebSocket for each visit to a room. What comes is lines of text; "* " begins one of the room's own.
const el = id => document.getElementById(id);
let socket = null;

el("enter").addEventListener("submit", event => {
  event.preventDefault();
  if (socket) socket.close();
  const url = new URL("rooms/" + encodeURIComponent(el("room").value), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.searchParams.set("name", el("name").value);
  const s = socket = new WebSocket(url);
  status("entering " + el("room").value);
  s.onopen = () => {
    if (s !== socket) return;
    el("lines").replaceChildren();
    el("say").hidden = false;
    el("text").focus();
    status("in " + el("room").value);
  };
  s.onmessage = m => { if (s === socket) line(m.data); };
  s.onclose = e => {
    if (s !== socket) return;
    socket = null;
    el("say").hidden = true;
    status("not connected" + (e.reason ? ": " + e.reason : ""));
  };
});

el("say").addEventListener("submit", event => {
  event.preventDefault();
  if (socket && el("text").value) socket.send(el("text").value);
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
