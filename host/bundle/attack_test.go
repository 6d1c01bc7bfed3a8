package bundle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/config"
	"github.com/wasmactors/wasmactors/host/service/sql"
)

// attack is what a stranger's manifest would do with a key. OUT in it is a folder beside the bundle's.
type attack struct {
	manifest string // what follows the modules and the actors, unless it has its own
	kind     service.Reach
	value    string
	// works shows, with consent, that the key does what it says; nil: it is enough that the bundle runs.
	works func(t *testing.T, p *place, b *Bundle)
}

const httpOf = "http: {listen: [{address: 127.0.0.1:0}], routes: {\"GET /\": "

// attacks has one for each key of ReachKeys.
var attacks = map[string]attack{
	"modules.*.go":                                           {"wasmactors: 1\nname: b\nmodules: {m: {go: OUT}}\nactors: {a: {type: echo}}\n", service.ReachRead, "OUT", nil},
	"modules.*.wasm":                                         {"wasmactors: 1\nname: b\nmodules: {m: {wasm: OUT/m.wasm}}\nactors: {a: {type: echo}}\n", service.ReachRead, "OUT/m.wasm", nil},
	"modules.*.dirs[].host":                                  {"wasmactors: 1\nname: b\nmodules: {m: {wasm: m.wasm, dirs: [{host: OUT, guest: /d, mode: rw}]}}\nactors: {a: {type: echo}}\n", service.ReachWrite, "OUT", nil},
	"store.path":                                             {"store: {path: OUT/store}\n", service.ReachWrite, "OUT/store", func(t *testing.T, p *place, _ *Bundle) { p.exists("store") }},
	"recorder.dir":                                           {"recorder: {dir: OUT/crashes}\n", service.ReachWrite, "OUT/crashes", func(t *testing.T, p *place, _ *Bundle) { p.exists("crashes") }},
	"cluster.listen":                                         {"cluster: {listen: \"127.0.0.1:7420\"}\n", service.ReachListen, "127.0.0.1:7420", nil},
	"cluster.accept.fetch[]":                                 {"cluster: {accept: {types: [m/echo], fetch: [m/echo]}}\n", service.ReachCode, "m/echo", nil},
	"store.key.env":                                          {"store: {path: store, key: {env: ATTACKED_KEY}}\n", service.ReachEnv, "ATTACKED_KEY", nil},
	"store.key.file":                                         {"store: {path: store, key: {file: OUT/store-key}}\n", service.ReachRead, "OUT/store-key", nil},
	"store.key.command":                                      {"store: {path: store, key: {command: [sh, OUT/key.sh, \"a b\"]}}\n", service.ReachRun, "sh OUT/key.sh \"a b\"", func(t *testing.T, p *place, _ *Bundle) { p.exists("ran") }},
	"http.listen[].address":                                  {"http: {listen: [{address: \"unix:OUT/s\"}], routes: {\"GET /\": {to: /user/a}}}\n", service.ReachListen, "unix:OUT/s", func(t *testing.T, p *place, _ *Bundle) { p.exists("s") }},
	"http.listen[].tls.cert":                                 {tlsOf("cert: OUT/cert, key: key"), service.ReachRead, "OUT/cert", nil},
	"http.listen[].tls.key":                                  {tlsOf("cert: cert, key: OUT/key"), service.ReachRead, "OUT/key", nil},
	"http.listen[].tls.client-ca":                            {tlsOf("cert: cert, key: key, client-ca: OUT/cert"), service.ReachRead, "OUT/cert", nil},
	"http.routes.*.static.dir":                               {httpOf + "{static: {dir: OUT, index: true}}}}\n", service.ReachRead, "OUT", serves("id_ed25519")},
	"http.routes.*.auth.basic.file":                          {httpOf + "{to: /user/a, auth: {basic: {file: OUT/users}}}}}\n", service.ReachRead, "OUT/users", nil},
	"http.routes.*.auth.jwt.keys[].file":                     {httpOf + "{to: /user/a, auth: {jwt: {keys: [{alg: HS256, file: OUT/id_ed25519}]}}}}}\n", service.ReachRead, "OUT/id_ed25519", nil},
	"services.config.files[].path":                           {"services: {config: {files: [{path: OUT/settings.yaml}]}}\n", service.ReachRead, "OUT/settings.yaml", nil},
	"services.config.environment.*":                          {"services: {config: {environment: {k: ATTACKED}}}\n", service.ReachEnv, "ATTACKED", nil},
	"services.config.secrets.*.file":                         {"services: {config: {secrets: {k: {file: OUT/id_ed25519}}}}\n", service.ReachRead, "OUT/id_ed25519", nil},
	"services.config.secrets.*.env":                          {"services: {config: {secrets: {k: {env: ATTACKED}}}}\n", service.ReachEnv, "ATTACKED", nil},
	"services.config.secrets.*.provider":                     {"services: {config: {secrets: {k: {provider: vault}}}}\n", service.ReachSecret, "vault", nil},
	"services.kv.scope":                                      {"cluster: {}\nservices: {kv: {scope: cluster}}\n", service.ReachCluster, "b", nil},
	"services.pubsub.scope":                                  {"cluster: {}\nservices: {pubsub: {scope: cluster}}\n", service.ReachCluster, "b", nil},
	"services.blob.folder":                                   {"services: {blob: {folder: OUT/objects}}\n", service.ReachWrite, "OUT/objects", func(t *testing.T, p *place, _ *Bundle) { p.exists("objects") }},
	"services.sql.databases.*.file":                          {"services: {sql: {databases: {main: {file: OUT/authorized_keys}}}}\n", service.ReachWrite, "OUT/authorized_keys", func(t *testing.T, p *place, _ *Bundle) { p.exists("authorized_keys") }},
	"services.sql.databases.*.dsn":                           {"services: {sql: {databases: {main: {driver: spy, dsn: \"u:p@tcp(10.0.0.1:3306)/x\"}}}}\n", service.ReachConnect, "u:***@tcp(10.0.0.1:3306)/x", func(t *testing.T, _ *place, _ *Bundle) { spied(t) }},
	"services.http.roots":                                    {"services: {http: {roots: OUT/cert}}\n", service.ReachRead, "OUT/cert", nil},
	"services.http.proxy":                                    {"services: {http: {proxy: \"http://u:p@10.0.0.1:3128\"}}\n", service.ReachConnect, "http://u:***@10.0.0.1:3128", nil},
	"services.http.direct[]":                                 {"services: {http: {direct: [loopback]}}\n", service.ReachConnect, "loopback", nil},
	"services.http.nat64[]":                                  {"services: {http: {nat64: [\"2001:db8::/96\"]}}\n", service.ReachConnect, "2001:db8::/96", nil},
	"actors.*.capabilities.http.hosts[]":                     {actorOf("hosts: [example.com]"), service.ReachConnect, "example.com", nil},
	"actors.*.capabilities.http.private[]":                   {actorOf("hosts: [\"http://127.0.0.1:*\"], private: [loopback]"), service.ReachConnect, "loopback", nil},
	"actors.*.capabilities.http.rules[].hosts[]":             {actorOf("rules: [{hosts: [example.com]}]"), service.ReachConnect, "example.com", nil},
	"actors.*.capabilities.http.rules[].private[]":           {actorOf("rules: [{hosts: [\"http://127.0.0.1:*\"], private: [loopback]}]"), service.ReachConnect, "loopback", nil},
	"http.routes.*.make.capabilities.http.hosts[]":           {madeOf("hosts: [example.com]"), service.ReachConnect, "example.com", nil},
	"http.routes.*.make.capabilities.http.private[]":         {madeOf("hosts: [\"http://127.0.0.1:*\"], private: [loopback]"), service.ReachConnect, "loopback", nil},
	"http.routes.*.make.capabilities.http.rules[].hosts[]":   {madeOf("rules: [{hosts: [example.com]}]"), service.ReachConnect, "example.com", nil},
	"http.routes.*.make.capabilities.http.rules[].private[]": {madeOf("rules: [{hosts: [\"http://127.0.0.1:*\"], private: [loopback]}]"), service.ReachConnect, "loopback", nil},
}

func tlsOf(files string) string {
	return "http: {listen: [{address: 127.0.0.1:0, tls: {" + files + "}}], routes: {\"GET /\": {to: /user/a}}}\n"
}

func actorOf(grant string) string {
	return "wasmactors: 1\nname: b\nmodules: {m: {wasm: m.wasm}}\nactors: {a: {type: echo, capabilities: {http: {" + grant + "}}}}\n"
}

func madeOf(grant string) string {
	return "http: {listen: [{address: 127.0.0.1:0}], routes: {\"GET /{x}\": {to: \"/user/m-{x}\", make: {type: echo, capabilities: {http: {" + grant + "}}}}}}\n"
}

func (p *place) exists(name string) {
	p.t.Helper()
	if _, err := os.Lstat(filepath.Join(p.out, name)); err != nil {
		p.t.Error(err)
	}
}

// serves asks the gateway for the folder that it serves.
func serves(name string) func(*testing.T, *place, *Bundle) {
	return func(t *testing.T, _ *place, b *Bundle) {
		r, err := http.Get("http://" + b.Gateway().Addrs()[0].String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if page, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(page), name) {
			t.Errorf("%d %s %v", r.StatusCode, page, err)
		}
	}
}

// spy is a driver, and a provider of secrets, that notes that it was used.
type spy struct{ opened chan string }

func (s spy) Open(_ context.Context, of sql.Source) (sql.Database, error) {
	s.opened <- of.DSN
	return noDatabase{}, nil
}

func (s spy) Secret(_ context.Context, key string) ([]byte, error) {
	s.opened <- key
	return []byte("0123456789"), nil
}

type noDatabase struct{ sql.Database }

func (noDatabase) Close() error { return nil }

var theSpy = spy{make(chan string, 10)}

func spied(t *testing.T) {
	t.Helper()
	select {
	case <-theSpy.opened:
	default:
		t.Error("the driver was not asked")
	}
}

// attacked are our services as a program has them that adds a driver and a provider of secrets.
func attacked() (kinds []service.Kind) {
	for _, k := range all.Kinds() {
		switch k.Name() {
		case "config":
			k = config.New(map[string]config.Provider{"vault": theSpy})
		case "sql":
			k = sql.Define(map[string]sql.Driver{"spy": theSpy})
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// valuables fills the folder outside, and gives the bundle a certificate of its own.
func (p *place) valuables() {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		p.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, at := range []string{"b", "out"} {
		p.file(at+"/store-key", storeKey)
		p.file(at+"/key.sh", "echo > \"$(dirname \"$0\")/ran\"; echo "+storeKey+"\n")
		p.file(at+"/cert", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
		p.file(at+"/key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	}
	p.file("out/users", "me:"+string(hash)+"\n")
	p.file("out/id_ed25519", strings.Repeat("private ", 8)+"\n")
	p.file("out/settings.yaml", "k: v\n")
	p.file("out/m.wasm", string(wasmOf(p.t, "echo")))
	p.file("out/main.go", "package main\n")
}

func (p *place) listing() (names []string) {
	entries, err := os.ReadDir(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Each key that reaches outside has an attack, which is refused without consent and with consent to
// everything else: nothing is opened, made, built or listened on. With consent it works.
func TestAttacksByReach(t *testing.T) {
	t.Setenv("ATTACKED", "a very secret value")
	t.Setenv("ATTACKED_KEY", storeKey)
	declared := map[string]ReachKey{}
	for _, k := range ReachKeys(attacked()...) {
		declared[k.Key] = k
		if _, ok := attacks[k.Key]; !ok {
			t.Errorf("%s reaches outside (%s), and there is no attack by it", k.Key, k.Kind)
		}
	}
	for key, a := range attacks {
		t.Run(key, func(t *testing.T) {
			k, ok := declared[key]
			if !ok || k.Kind != a.kind && !(k.OrWrite && a.kind == service.ReachWrite) {
				t.Fatalf("the key declares %q", k.Kind)
			}
			p := newPlace(t)
			p.valuables()
			text := a.manifest
			if !strings.HasPrefix(text, "wasmactors:") {
				text = echoing + text
			}
			m := p.load(text, attacked()...)
			value := strings.ReplaceAll(a.value, "OUT", p.out)
			found := m.Reaches()
			at := slices.IndexFunc(found, func(r Reach) bool { return generic(r.Key) == key })
			if at < 0 || found[at].Kind != a.kind || found[at].Real != value || found[at].Line == 0 || found[at].Column < 2 {
				t.Fatalf("it is seen as %v, want %s %s", found, a.kind, value)
			}
			this := found[at]
			var others, everything []Permission
			for _, r := range found {
				everything = append(everything, r.Permission())
				if r.Permission() != this.Permission() {
					others = append(others, r.Permission())
				}
			}
			before := p.listing()
			for name, allow := range map[string]func([]Reach) error{"nothing is allowed": nil, "all else is allowed": Permit(others...)} {
				o := Options{Allow: allow, Progress: func(module, text string) { t.Errorf("%s: %s: %s", name, module, text) }}
				b, err := Open(t.Context(), m, o)
				var refused *OutsideError
				if !errors.As(err, &refused) || !slices.Contains(refused.Reaches, this) || name == "all else is allowed" && len(refused.Reaches) != 1 {
					t.Fatalf("%s: %v %v", name, b, err)
				}
				if !strings.Contains(err.Error(), "bundle.yaml:") || !strings.Contains(err.Error(), this.Key+": ") {
					t.Errorf("%s: it does not say where: %v", name, err)
				}
			}
			if after := p.listing(); !slices.Equal(before, after) || len(theSpy.opened) > 0 {
				t.Fatalf("it was refused, and there is now %v", after)
			}
			o := Options{Allow: Permit(everything...), NoBuild: true, StateDir: func(*Manifest) (string, error) { return filepath.Join(filepath.Dir(p.dir), "state"), nil }}
			b, err := Open(t.Context(), m, o)
			if key == "modules.*.go" { // the build would begin
				if !errors.Is(err, ErrNoBuild) {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close(context.Background())
			if _, err := b.Start(func(c host.Config) host.Config { return c }, nil); err != nil {
				t.Fatal(err)
			}
			if a.works != nil {
				a.works(t, p, b)
			}
		})
	}
}

// generic is a key with * for names and [] for elements, as ReachKeys has them.
func generic(key string) string {
	for _, k := range ReachKeys(attacked()...) {
		if matchesKey(k.Key, key) {
			return k.Key
		}
	}
	return ""
}

// matchesKey compares from left to right: names that the grammar does not fix are *.
func matchesKey(pattern, key string) bool {
	for pattern != "" {
		switch {
		case strings.HasPrefix(pattern, "[]"):
			if !strings.HasPrefix(key, "[") {
				return false
			}
			_, key, _ = strings.Cut(key, "]")
			pattern = pattern[2:]
		case pattern[0] == '*':
			if strings.HasPrefix(key, `"`) {
				_, key, _ = strings.Cut(key[1:], `"`)
			} else {
				key = key[strings.IndexAny(key+".", ".["):]
			}
			pattern = pattern[1:]
		case key == "" || key[0] != pattern[0]:
			return false
		default:
			key, pattern = key[1:], pattern[1:]
		}
	}
	return key == ""
}

// What a manifest reaches is asked for before a module is loaded or built, by everything that opens it.
func TestReachIsAskedFirst(t *testing.T) {
	p := newPlace(t)
	p.file("b/m.wasm", "no module")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := p.load(echoing + "http: {listen: [{address: \"" + l.Addr().String() + "\"}], routes: {\"GET /\": {to: /user/a}}}\n")
	if _, err := Open(t.Context(), m, Options{}); !errors.As(err, new(*OutsideError)) {
		t.Errorf("the module is read before: %v", err)
	}
	// A bundle that is only loaded is not asked about what it reaches when it runs; it does not run.
	p.file("b/m.wasm", string(wasmOf(t, "echo")))
	b, err := Open(t.Context(), m, Options{LoadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	if _, err := b.Start(nil, nil); err == nil || !strings.Contains(err.Error(), "LoadOnly") {
		t.Errorf("it runs: %v", err)
	}
	if _, err := Check(t.Context(), p.dir, nil, Options{}); err != nil {
		t.Errorf("check: %v", err)
	}
	// About its modules it is, also if the manifest has mistakes.
	for _, more := range []string{"", "wrong: 1\n"} {
		p.file("b/"+FileName, strings.Replace(echoing, "m.wasm", p.out+"/m.wasm", 1)+more)
		if _, err := Check(t.Context(), p.dir, nil, Options{}); !errors.As(err, new(*OutsideError)) {
			t.Errorf("check of %q: %v", more, err)
		}
	}
}

// A changed manifest that reaches more is asked about, and the version before keeps running.
func TestDevAsksAgain(t *testing.T) {
	b := newBenchOf(t, devManifest)
	out := t.TempDir()
	var asked [][]Reach
	allowed := make(chan bool, 10)
	b.run(Dev{Path: b.dir, Options: Options{Services: all.Kinds(), Allow: func(found []Reach) error {
		asked = append(asked, found)
		if <-allowed {
			return nil
		}
		return &OutsideError{found}
	}}})
	b.next(DevUp)
	more := "services: {blob: {folder: " + out + "/objects}}\n"
	allowed <- false
	b.edit("actors:\n", more+"actors:\n")
	e := b.next(DevFailed)
	if !errors.As(e.Err, new(*OutsideError)) || e.System == nil || e.Manifest.Services != nil {
		t.Fatalf("%v, %v runs", e.Err, e.System)
	}
	if _, err := e.System.Lookup("/user/a"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(out + "/objects"); err == nil {
		t.Error("it was opened")
	}
	for range 4 {
		allowed <- true
	}
	b.edit(more, more+"\n")
	b.next(DevUp)
	if _, err := os.Lstat(out + "/objects"); err != nil {
		t.Error(err)
	}
	if len(asked) == 0 || len(asked[0]) != 1 || asked[0][0].Key != "services.blob.folder" || asked[0][0].Line != 6 {
		t.Errorf("asked about %v", asked)
	}
}
