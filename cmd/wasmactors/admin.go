package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/dashboard"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/observe"
)

// adminFlags are the flags for the admin endpoint of commands that run a bundle.
func adminFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "admin", Usage: "how the running bundle can be reached: `WAY` is unix (the default: a socket that only you can open), tcp:127.0.0.1:PORT (besides, with a token) or off"},
		&cli.StringFlag{Name: "admin-token-file", Usage: "the token for tcp is in `FILE`, mode 0600, which is made if it is missing (default: a file beside the socket, for this run)"},
		&cli.StringFlag{Name: "admin-read-token-file", Usage: "a read-only token is in `FILE`, which is made if it is missing"},
		&cli.StringFlag{Name: "crash-reports", Usage: "keep crash reports in the folder `DIR`, too, across runs (made if it is missing); wasmactors crashes shows them"},
		&cli.StringFlag{Name: "health", Usage: "answer /healthz, /readyz and /metrics at `ADDRESS` as well, without a token, such as :9090"},
	}
}

// adminDoor is a run's admin endpoint.
type adminDoor struct {
	cfg      admin.Config
	explicit bool // a flag asks for it: then it is an error if it cannot be opened
	off      bool
	tokens   string // file of the token
	token    admin.Token
	page     string               // file that brings a browser to the dashboard, if it is made
	made     []string             // files that go with the run
	folder   string               // for crash reports; "" for none
	crashes  *observe.CrashFolder // the same, until an observer has it
	trouble  func(error)          // of saving reports
	observer *observe.Observer
	server   *admin.Server
	err      error
}

// readAdminFlags reads the flags, and opens nothing yet.
func readAdminFlags(c *cli.Context, env *environment, m *bundle.Manifest) (*adminDoor, error) {
	d := &adminDoor{explicit: c.IsSet("admin") || c.IsSet("health"), cfg: admin.NewConfig().WithLog(warnings(c, env)).WithHealth(c.String("health"))}
	if dir := c.String("crash-reports"); dir != "" {
		var err error
		d.folder, d.trouble = dir, func(err error) { env.note(oneLine(err.Error())) }
		if d.crashes, err = observe.OpenCrashFolder(dir, d.trouble); err != nil {
			return nil, usage("--crash-reports: %v", err)
		}
	}
	err := d.read(c, m)
	if err != nil {
		_ = d.crashes.Close()
		return nil, err
	}
	return d, nil
}

// read reads the flags for addresses and tokens.
func (d *adminDoor) read(c *cli.Context, m *bundle.Manifest) error {
	text := c.String("admin")
	if text == "" && c.Bool("open") { // a browser cannot open a socket
		text = "tcp:127.0.0.1:0"
	}
	way, address, _ := strings.Cut(text, ":")
	switch way {
	case "", "unix", "tcp":
	case "off":
		d.off = c.String("health") == ""
	default:
		return usage("--admin must be unix, off or tcp:127.0.0.1:PORT, not %q", c.String("admin"))
	}
	if (way == "unix" || way == "off") && address != "" || way == "tcp" && address == "" {
		return usage("--admin must be unix, off or tcp:127.0.0.1:PORT, not %q", c.String("admin"))
	}
	if way != "tcp" && (c.IsSet("admin-token-file") || c.IsSet("admin-read-token-file")) {
		return usage("token files need --admin tcp:127.0.0.1:PORT; the socket needs no token")
	}
	if way == "off" {
		return nil
	}
	path, err := endpoint.Path(os.Getpid(), m.Name)
	if err != nil {
		return d.failed(err)
	}
	d.cfg = d.cfg.WithSocket(path)
	if way == "tcp" {
		if err = d.tcp(c, address, path); err != nil {
			d.close()
		}
	}
	return err
}

// tcp reads or makes the tokens.
func (d *adminDoor) tcp(c *cli.Context, address, socket string) error {
	d.cfg = d.cfg.WithTCP(address).WithDashboard(dashboard.Handler())
	if d.tokens = c.String("admin-token-file"); d.tokens == "" {
		d.tokens = endpoint.TokenPath(socket)
		_ = os.Remove(d.tokens) // left by an earlier process with the same number
		d.made = append(d.made, d.tokens)
	}
	token, err := admin.TokenFile(d.tokens)
	if err != nil {
		return usage("--admin-token-file: %v", err)
	}
	d.cfg, d.token, d.page = d.cfg.WithToken(token), token, strings.TrimSuffix(socket, filepath.Ext(socket))+".html"
	if file := c.String("admin-read-token-file"); file != "" {
		if token, err = admin.TokenFile(file); err != nil {
			return usage("--admin-read-token-file: %v", err)
		}
		d.cfg = d.cfg.WithReadToken(token)
	}
	return nil
}

// failed returns err if a flag asks for the endpoint. Otherwise the run goes on without one:
// it may be in a container without a folder to write to.
func (d *adminDoor) failed(err error) error {
	if d.explicit {
		return &usageError{fmt.Errorf("--admin: %w", err)}
	}
	d.err, d.off = err, true
	return nil
}

// open begins to serve, or goes on with another system after the one before. It is called before the first actor starts.
func (d *adminDoor) open(sys *host.System, b *bundle.Bundle, t *telemetry) {
	if d.off && d.folder == "" {
		return
	}
	m := b.Manifest
	dir, err := filepath.Abs(m.Dir)
	if err != nil {
		dir = m.Dir
	}
	if d.observer != nil {
		d.observer.Close()
		if d.folder != "" {
			if d.crashes, err = observe.OpenCrashFolder(d.folder, d.trouble); err != nil {
				d.trouble(fmt.Errorf("crash reports are not saved any more: %w", err))
			}
		}
	}
	d.observer = observe.New(sys, observe.Options{}.WithBundle(m.Name, dir).WithServices(b.Services).WithStore(func() *observe.Store { return storeFigures(b) }).WithCodes(func() []observe.Code { return codesOf(b) }).WithCrashes(0, d.crashes).WithLatencies(b.Latencies).WithHistory())
	d.crashes = nil // the observer closes it
	if d.off || d.err != nil {
		return
	}
	metrics, err := t.metrics(d.observer, b, version)
	if err != nil {
		d.err = err
		return
	}
	if d.server != nil {
		d.server.Show(sys, d.observer, metrics)
		return
	}
	d.server, d.err = admin.Serve(context.Background(), sys, d.cfg.WithObserver(d.observer).WithMetrics(metrics).WithStore(func() admin.Store { return adminStore(b, sys) }).WithKeys(keysOf(b)))
}

// codesOf is which code the actors of a bundle run.
func codesOf(b *bundle.Bundle) (all []observe.Code) {
	for _, c := range b.Codes() {
		all = append(all, observe.Code(c))
	}
	return all
}

// tell prints what was opened, or why not.
func (d *adminDoor) tell(env *environment, quiet bool) error {
	if d.err != nil && d.explicit {
		return &usageError{fmt.Errorf("--admin: %w", d.err)}
	}
	if d.err != nil && !quiet {
		env.note("the bundle cannot be reached while it runs: " + oneLine(d.err.Error()) + "; --admin off starts it without that")
	}
	if d.server == nil || !d.explicit || quiet {
		return nil
	}
	addr, health := d.server.Addr(), d.server.HealthAddr()
	if env.json {
		e := map[string]any{"event": "admin", "socket": d.cfg.Socket()}
		if addr != nil {
			e["address"], e["token_file"] = addr.String(), d.tokens
		}
		if health != nil {
			e["health"] = health.String()
		}
		env.writeJSON(e)
		return nil
	}
	if addr != nil {
		env.note(fmt.Sprintf("reached at http://%s/ with the token in %s", addr, d.tokens))
	}
	if health != nil {
		env.note(fmt.Sprintf("health is answered at http://%s/healthz", health))
	}
	return nil
}

// close ends the endpoint. It is called after the actors have ended.
func (d *adminDoor) close() {
	if d.server != nil {
		_ = d.server.Close()
	}
	if d.observer != nil {
		d.observer.Close()
	}
	_ = d.crashes.Close()
	for _, file := range d.made {
		_ = os.Remove(file)
	}
}

// attachDoor opens the endpoint for a system of dev.
func attachDoor(env *environment) attachment {
	return func(c *cli.Context, e bundle.DevEvent, t *telemetry) (string, func(), error) {
		d, err := readAdminFlags(c, env, e.Manifest)
		if err != nil {
			return "", nil, err
		}
		d.open(e.System, e.Bundle, t)
		if err := d.tell(env, c.Bool("quiet")); err != nil {
			d.close()
			return "", nil, err
		}
		if !c.Bool("open") || d.server == nil || d.server.Addr() == nil {
			return "", d.close, nil
		}
		page, err := d.dashboard()
		if err != nil {
			d.close()
			return "", nil, err
		}
		return page, d.close, nil
	}
}

// dashboard makes a page that leads to the dashboard and logs in there, and returns its address.
// The page is a file of the user's alone: a token in the address that a browser is started with
// would be seen by everybody who lists processes.
func (d *adminDoor) dashboard() (string, error) {
	_ = os.Remove(d.page) // left by an earlier process with the same number
	d.made = append(d.made, d.page)
	return dashboardPage(d.page, d.server.Addr().String(), d.token)
}

// dashboardPage makes the file of such a page, which does not exist.
func dashboardPage(file, address string, token admin.Token) (string, error) {
	to := "http://" + address + "/#token=" + url.QueryEscape(token.Reveal())
	text := "<!doctype html><meta charset=utf-8><title>wasmactors</title><meta http-equiv=refresh content=\"0;url=" + html.EscapeString(to) + "\">\n"
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = f.WriteString(text); err == nil {
		err = f.Close()
	}
	return "file://" + filepath.ToSlash(file), err
}

// reachFlags are the flags of commands that talk to a running bundle.
func reachFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		&cli.StringFlag{Name: "bundle", Aliases: []string{"b"}, EnvVars: []string{"WASMACTORS_BUNDLE"}, Usage: "the bundle `NAME`, NAME@NODE in a cluster, the number of its process, the path of its socket, or tcp:127.0.0.1:PORT; not needed while only one runs"},
		&cli.StringFlag{Name: "token-file", EnvVars: []string{"WASMACTORS_TOKEN_FILE"}, Usage: "the token for tcp is in `FILE`"},
		&cli.BoolFlag{Name: "json", Usage: "print JSON, and errors as NDJSON"},
	)
}

// unreachableError says that a bundle does not run, or that it has no such actor.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// refusal gives an error of a server its exit code.
func refusal(err error) error {
	var p *admin.Problem
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case !errors.As(err, &p):
		return &unreachableError{fmt.Errorf("the bundle cannot be reached: %w", err)}
	case p.Code == "no_such_actor" || p.Code == "no_such_report" || p.Code == noSuchNode || p.Code == "ended":
		return &unreachableError{p}
	case p.Status == 400 || p.Code == "not_loaded" || p.Code == "outside":
		return &usageError{p}
	}
	return p
}

// write writes a line of an answer. The error is an outputError.
func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return &outputError{err}
	}
	return nil
}
