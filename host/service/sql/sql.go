package sql

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// Settings are the manifest's services.sql.
type Settings struct {
	Databases map[string]DatabaseSettings `manifest:"databases,required" doc:"the databases that grants may name" key:"^[a-z][a-z0-9_-]{0,31}$" what:"the name of a database: small letters, digits, - and _" keyreach:"none"`
}

// DatabaseSettings are the settings of a database.
type DatabaseSettings struct {
	Driver    string        `manifest:"driver" doc:"what kind of database it is; default: sqlite. Others are those that the program was built with" pattern:"^[a-z][a-z0-9_-]*$" what:"the name of a driver" reach:"none"`
	File      string        `manifest:"file" doc:"sqlite: the file, made if it is not there; relative to the manifest. Default: NAME.db in the state of the bundle" reach:"write"`
	DSN       string        `manifest:"dsn" doc:"other drivers: the source, as the driver takes it" reach:"connect"`
	Size      service.Size  `manifest:"size" doc:"how large the database may become; default: 1GiB" min:"65536" max:"281474976710656"`
	WAL       service.Size  `manifest:"wal" doc:"sqlite: how long the write-ahead log may become, and so one transaction; default: 256MiB" min:"1048576" max:"68719476736"`
	Memory    service.Size  `manifest:"memory" doc:"sqlite: memory of a connection; default: 32MiB" min:"4194304" max:"268435456"`
	Value     service.Size  `manifest:"value" doc:"sqlite: the longest text, blob or row; default: 1MiB" min:"4096" max:"67108864"`
	Statement service.Size  `manifest:"statement" doc:"the longest statement; default: 64KiB" min:"256" max:"1048576"`
	Params    int           `manifest:"params" doc:"parameters of a statement; default: 1000" min:"1" max:"32766"`
	Readers   int           `manifest:"readers" doc:"connections that read at a time; default: 4" min:"1" max:"64"`
	Busy      time.Duration `manifest:"busy" doc:"how long to wait for another process that holds the database; default: 5s"`
	Sync      string        `manifest:"sync" doc:"sqlite: full: an acknowledged transaction outlives the machine's power; normal: it outlives the process. Default: full" enum:"full,normal"`
}

// Grant is the manifest's capabilities.sql of an actor.
type Grant struct {
	Databases  map[string]string `manifest:"databases,required" doc:"which databases, and how: ro reads, rw writes as well" enum:"ro,rw" keyreach:"none"`
	Rows       int               `manifest:"rows" doc:"rows of an answer; default: 1000" min:"1" max:"1000000"`
	Answer     service.Size      `manifest:"answer" doc:"bytes of an answer's rows; default: 48KiB, as a guest of our SDK takes messages of 64KiB" min:"1024" max:"4194304"`
	Statements int               `manifest:"statements" doc:"statements of a transaction; default: 100" min:"1" max:"10000"`
	Cursors    int               `manifest:"cursors" doc:"results that are read page by page at a time; default: 2" min:"1" max:"32"`
	CursorIdle time.Duration     `manifest:"cursor-idle" doc:"how long a page may be left waiting to be asked for; default: 10s"`
	CursorLife time.Duration     `manifest:"cursor-life" doc:"how long a result may be read; default: 1m"`
}

// Defaults of settings and grants.
const (
	DefaultSize       = 1 << 30
	DefaultWAL        = 256 << 20
	DefaultMemory     = 32 << 20
	DefaultValue      = 1 << 20
	DefaultStatement  = 64 << 10
	DefaultParams     = 1000
	DefaultReaders    = 4
	DefaultBusy       = 5 * time.Second
	DefaultRows       = 1000
	DefaultAnswer     = 48 << 10
	DefaultStatements = 100
	DefaultCursors    = 2
	DefaultCursorIdle = 10 * time.Second
	DefaultCursorLife = time.Minute
)

// Service is the service sql with SQLite alone.
var Service = Define(nil)

// Define is the service sql with further drivers, by their names in manifests. No name may be
// "sqlite".
func Define(drivers map[string]Driver) *service.Service[Settings, Grant] {
	all := map[string]Driver{"sqlite": SQLite}
	for name, d := range drivers {
		if _, twice := all[name]; twice || d == nil {
			panic(fmt.Sprintf("sql: the driver %q is registered already, or nil", name))
		}
		all[name] = d
	}
	return service.Define(service.Definition[Settings, Grant]{
		Name: "sql", Doc: "databases in SQL",
		Bounds:        service.Bounds{AtOnce: 16, Bytes: 4 << 20, Timeout: 10 * time.Second},
		CheckSettings: func(s *Settings) error { return s.check(all) },
		CheckGrant:    checkGrant,
		Open:          func(env *service.Env, s *Settings) (service.Provider[Grant], error) { return open(env, s, all) },
	})
}

func (s *Settings) check(drivers map[string]Driver) error {
	for _, name := range keys(s.Databases) {
		d := s.Databases[name]
		if drivers[d.driver()] == nil {
			return service.At("databases."+name+".driver", fmt.Errorf("there is no driver %q: use one of %s", d.Driver, strings.Join(keys(drivers), ", ")))
		}
		if d.driver() == "sqlite" && d.DSN != "" {
			return service.At("databases."+name+".dsn", errors.New("sqlite needs file"))
		}
		if d.driver() != "sqlite" && d.File != "" {
			return service.At("databases."+name+".file", errors.New("file is for sqlite; other drivers take dsn"))
		}
	}
	return nil
}

func checkGrant(g *Grant) error {
	if len(g.Databases) == 0 {
		return service.At("databases", errors.New("name at least one database, such as main: ro"))
	}
	return nil
}

func (d *DatabaseSettings) driver() string {
	if d.Driver == "" {
		return "sqlite"
	}
	return d.Driver
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// source is what a driver is given to open a database.
func (d *DatabaseSettings) source(name string, env *service.Env) Source {
	s := Source{
		Name: name, File: d.File, DSN: d.DSN, State: env.StateDir,
		Size: int64(or(d.Size, DefaultSize)), WAL: int64(or(d.WAL, DefaultWAL)), Memory: int64(or(d.Memory, DefaultMemory)),
		Value: int64(or(d.Value, DefaultValue)), Statement: int(or(d.Statement, DefaultStatement)), Params: or(d.Params, DefaultParams),
		Readers: or(d.Readers, DefaultReaders), Busy: or(d.Busy, DefaultBusy), Sync: or(d.Sync, "full"),
		Warn: env.Log.Warn,
	}
	if s.File != "" && !filepath.IsAbs(s.File) {
		s.File = filepath.Join(env.Base, s.File)
	}
	return s
}

// provider is the service.
type provider struct {
	env     *service.Env
	dbs     map[string]*database
	cursors *cursors
}

// database is an open database with what requests are checked against.
type database struct {
	Database
	source Source
	now    func() time.Time
}

func open(env *service.Env, s *Settings, drivers map[string]Driver) (_ service.Provider[Grant], err error) {
	p := &provider{env: env, dbs: map[string]*database{}, cursors: newCursors(env)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close(context.Background()))
		}
	}()
	for _, name := range keys(s.Databases) {
		d := s.Databases[name]
		driver := drivers[d.driver()]
		if driver == nil {
			return nil, fmt.Errorf("there is no driver %q", d.Driver)
		}
		source := d.source(name, env)
		db, err := driver.Open(context.Background(), source)
		if err != nil {
			return nil, err
		}
		p.dbs[name] = &database{db, source, env.Clock.Now}
	}
	return p, nil
}

// Close implements [service.Provider].
func (p *provider) Close(context.Context) error {
	p.cursors.close()
	var errs []error
	for _, name := range keys(p.dbs) {
		errs = append(errs, p.dbs[name].Close())
	}
	return errors.Join(errs...)
}

// Serve implements [service.Provider].
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	var q request
	var err error
	b := bounds{params: 1 << 15, statements: or(r.Grant.Statements, DefaultStatements)}
	switch r.Op {
	case "query", "exec":
		q, err = decodeSingle(r.Args, b)
		q.write = r.Op == "exec"
	case "tx":
		q, err = decodeTx(r.Args, b)
	default:
		return nil, r.Unknown()
	}
	if err != nil {
		return nil, badRequest(r.Op, err)
	}
	db, err := p.granted(r.Grant, &q)
	if err != nil {
		return nil, err
	}
	for i := range q.statements {
		if err := db.check(r.Grant, &q.statements[i]); err != nil {
			return nil, err
		}
	}
	if q.statements[0].rest == Page {
		if q.write {
			return nil, service.Errorf(service.BadRequest, "rest is fail or cut for exec")
		}
		return p.cursors.open(ctx, r, db, &q.statements[0])
	}
	// The answer is built in the host's memory, and counts for the grant.
	release, err := r.Hold(int64(or(r.Grant.Answer, DefaultAnswer)))
	if err != nil {
		return nil, err
	}
	defer release()
	key := requestOf(r, &q)
	if r.Op == "tx" {
		return runTx(ctx, db, r.Grant, &q, key)
	}
	return runSingle(ctx, db, r.Grant, &q, key)
}

// granted is the database of a request, if the grant covers it.
func (p *provider) granted(g *Grant, q *request) (*database, error) {
	if q.db == "" {
		if len(g.Databases) != 1 {
			return nil, service.Errorf(service.BadRequest, "db is missing: the grant has %s", strings.Join(keys(g.Databases), ", "))
		}
		for q.db = range g.Databases {
		}
	}
	mode, ok := g.Databases[q.db]
	if !ok {
		return nil, service.Deny("databases", "the database %.40q is not granted", q.db)
	}
	db := p.dbs[q.db]
	switch {
	case db == nil:
		return nil, service.Errorf(service.NotFound, "services.sql.databases has no %q", q.db)
	case q.write && mode != "rw":
		return nil, service.Errorf(service.ReadOnly, "the grant of %s is ro; databases.%s: rw would allow it", q.db, q.db)
	}
	return db, nil
}

// check refuses what exceeds a bound, and fills in the grant's bounds.
func (d *database) check(g *Grant, st *statement) error {
	if len(st.sql) > d.source.Statement {
		return service.Errorf(service.TooLarge, "a statement of %d bytes, at most %d", len(st.sql), d.source.Statement)
	}
	if strings.IndexByte(st.sql, 0) >= 0 {
		return service.Errorf(service.BadRequest, "a statement with a zero byte")
	}
	if len(st.params) > d.source.Params {
		return service.Errorf(service.TooLarge, "%d parameters, at most %d", len(st.params), d.source.Params)
	}
	most := or(g.Rows, DefaultRows)
	if st.rows == 0 || st.rows > most {
		st.rows = most
	}
	return nil
}

// errEnough ends a statement whose answer is full.
var errEnough = errors.New("sql: enough rows")

// run runs a statement and encodes what it returns, within a number of bytes.
func run(ctx context.Context, tx Tx, st *statement, most int, s *result) error {
	out, err := tx.Run(ctx, st.sql, st.params,
		func(names []string) error { return s.describe(names, most) },
		func(values []Value) error {
			if s.count < st.rows && s.add(values, most) {
				return nil
			}
			if st.rest == Cut {
				s.cut = true
				return errEnough
			}
			return service.Errorf(service.TooLarge, "more than %d rows or %d bytes: add LIMIT, or rest: page or cut", st.rows, most)
		})
	if s.out = out; err != nil && err != errEnough {
		return err
	}
	return nil
}

// describe notes the columns.
func (s *result) describe(names []string, most int) error {
	s.columns = names
	n := 0
	for _, c := range names {
		n += len(c) + 5
	}
	if n > most {
		return service.Errorf(service.TooLarge, "the names of the columns take more than %d bytes", most)
	}
	return nil
}

func (s *result) end() string {
	switch {
	case s.cut:
		return endCut
	case len(s.columns) > 0:
		return endAll
	}
	return ""
}

func runSingle(ctx context.Context, db *database, g *Grant, q *request, r *once.Request) (any, error) {
	var answer []byte
	err := db.Do(ctx, Scope{Access: access(q.write), Single: !q.write}, func(tx Tx) (err error) {
		answer, err = onlyOnce(tx, r, db.now, func() ([]byte, error) {
			var s result
			if err := run(ctx, tx, &q.statements[0], int(or(g.Answer, DefaultAnswer)), &s); err != nil {
				return nil, err
			}
			w := abi.NewWriter(nil)
			s.encode(w, s.end(), 0)
			return w.Bytes(), nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return host.Raw(answer), nil
}

// runTx runs all statements, or has no effect.
func runTx(ctx context.Context, db *database, g *Grant, q *request, r *once.Request) (any, error) {
	var answer []byte
	err := db.Do(ctx, Scope{Access: access(q.write)}, func(tx Tx) (err error) {
		answer, err = onlyOnce(tx, r, db.now, func() ([]byte, error) { return runAll(ctx, tx, g, q) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return host.Raw(answer), nil
}

// runAll runs the statements of a transaction and encodes what they return.
func runAll(ctx context.Context, tx Tx, g *Grant, q *request) ([]byte, error) {
	results := make([]result, len(q.statements))
	left := int(or(g.Answer, DefaultAnswer))
	for i := range q.statements {
		st, s := &q.statements[i], &results[i]
		if err := run(ctx, tx, st, left, s); err != nil {
			return nil, numbered(i, err)
		}
		if left -= len(s.rows); !st.affected.has(s.out.Affected) {
			return nil, service.Errorf(service.Conflict, "statement %d: %d rows affected, expected %d to %d; nothing was done", i, s.out.Affected, st.affected.from, st.affected.to)
		}
		if !st.returned.has(int64(s.count)) {
			return nil, service.Errorf(service.Conflict, "statement %d: %d rows, expected %d to %d; nothing was done", i, s.count, st.returned.from, st.returned.to)
		}
	}
	w := abi.NewWriter(nil)
	w.Map(1)
	w.Text("results")
	w.Array(len(results))
	for i := range results {
		results[i].encode(w, results[i].end(), 0)
	}
	return w.Bytes(), nil
}

// numbered says which statement of a transaction has failed.
func numbered(i int, err error) error {
	var e *service.Error
	if errors.As(err, &e) {
		c := *e
		c.Text = fmt.Sprintf("statement %d: %s", i, e.Text)
		return &c
	}
	return err
}

func access(write bool) Access {
	if write {
		return Write
	}
	return Read
}
