// Package browsertest drives the dashboard in a real browser, in front of a system whose
// actors crash, and the page of samples/chat. It is a module of its own, with nothing but
// tests in it: who embeds the host, or installs the command, takes no part of what talks to
// browsers.
//
// Without Chromium the tests skip and say so; .ci/browser installs it where it may.
// go test -run TestPictures -pictures writes the pictures of docs/pictures again.
package browsertest
